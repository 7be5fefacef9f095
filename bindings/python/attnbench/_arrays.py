"""Arrays of any library as numpy views, and back. numpy has no bfloat16: with ml_dtypes its type is used, without it the 16 bits
of each number stand in a uint16."""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    from ml_dtypes import bfloat16 as BFLOAT16
except ImportError:
    BFLOAT16 = np.uint16

NUMPY = {"f32": np.dtype(np.float32), "bf16": np.dtype(BFLOAT16), "f16": np.dtype(np.float16), "u8": np.dtype(np.bool_), "i32": np.dtype(np.int32)}
WORDS = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "u8": "bool", "i32": "int32", "f64": "float64"}
# Of what is given: a uint16 can only be the bits of a bfloat16 here.
GIVEN = {"float32": "f32", "bfloat16": "bf16", "uint16": "bf16", "float16": "f16", "float64": "f64", "bool": "u8", "uint8": "u8", "int32": "i32"}
FRAMEWORKS = ("numpy", "torch", "jax", "cupy")


def to_float32(array: np.ndarray) -> np.ndarray:
    """float32 of an array of any type, the bits of bfloat16 included."""
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def to_bfloat16(array: np.ndarray) -> np.ndarray:
    """float32 rounded to bfloat16, ties to even, as this package has it."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = ((bits + (0x7FFF + (bits >> 16 & 1))) >> 16).astype(np.uint16)
    rounded = np.where(np.isnan(array), np.uint16(0x7FC0), rounded)
    return rounded.view(BFLOAT16)


def _module(array: Any) -> str:
    return type(array).__module__.split(".")[0]


def _from_torch(array: Any) -> np.ndarray:
    import torch

    array = array.detach()
    if array.device.type != "cpu":
        array = array.cpu()
    if array.dtype == torch.bfloat16:
        return array.view(torch.int16).numpy().view(np.uint16)
    return array.numpy()


def _view(array: Any, name: str) -> np.ndarray:
    module = _module(array)
    if isinstance(array, np.ndarray):
        return array
    if module == "torch" and hasattr(array, "detach"):
        return _from_torch(array)
    if module == "cupy":
        return array.get()
    if module in ("jax", "jaxlib") or hasattr(array, "__array_interface__"):
        return np.asarray(array)
    if hasattr(array, "__dlpack__"):
        if array.__dlpack_device__()[0] not in (1, 3):  # the processor's memory, pinned or not
            raise ValueError(f"{name} lies on a device that numpy cannot read: copy it to the host")
        return np.from_dlpack(array)
    raise ValueError(f"{name} is of type {type(array).__name__}, not an array of numpy, torch, jax or cupy")


def as_numpy(array: Any, name: str) -> tuple[np.ndarray, str]:
    """A view, or a copy where it lies on a device, and the name of its type."""
    try:
        view = _view(array, name)
    except (TypeError, RuntimeError, BufferError) as error:
        raise ValueError(f"{name} cannot be read as an array: {error}".splitlines()[0]) from error
    if isinstance(view, np.ma.MaskedArray):
        raise ValueError(f"{name} is a masked array, whose mask says nothing here: give its filled() numbers")
    if not view.dtype.isnative:
        view = view.astype(view.dtype.newbyteorder("="))
    kind = GIVEN.get(view.dtype.name)
    if kind is None:
        raise ValueError(f"{name} has elements of type {view.dtype.name}: float32, bfloat16, float16, float64, int32 and bool can be read")
    return view, kind


def put_into(target: np.ndarray, given: Any, name: str) -> None:
    """What a function returned, into memory of the type and shape that were asked for."""
    view, kind = as_numpy(given, name)
    wanted = GIVEN[target.dtype.name]
    if view.shape != target.shape:
        raise ValueError(f"{name} has shape {list(view.shape)}, not {list(target.shape)}")
    if kind != wanted:
        raise ValueError(f"{name} is {WORDS[kind]}, not {WORDS[wanted]} as the problem has it")
    np.copyto(target.view(view.dtype) if target.dtype != view.dtype else target, view)


def to_framework(array: np.ndarray, framework: str, device: Any = None) -> Any:
    """The same numbers; in torch on the processor without a copy."""
    if framework == "numpy":
        return array
    is_bfloat16 = GIVEN.get(array.dtype.name) == "bf16"  # lists of whole numbers are of no type that can be judged
    if framework == "torch":
        import torch

        if is_bfloat16:
            tensor = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        else:
            tensor = torch.from_numpy(array)
        return tensor if device is None else tensor.to(device)
    if framework == "jax":
        import jax
        import jax.numpy as jnp

        given = jnp.asarray(array)
        if is_bfloat16 and given.dtype != jnp.bfloat16:
            given = jax.lax.bitcast_convert_type(given, jnp.bfloat16)
        return given if device is None else jax.device_put(given, device)
    if framework == "cupy":
        import cupy

        return cupy.asarray(array)
    raise ValueError(f"a framework is {', '.join(FRAMEWORKS[:-1])} or {FRAMEWORKS[-1]}, not {framework!r}")
