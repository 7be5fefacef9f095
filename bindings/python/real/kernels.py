"""Attention that nobody of this project wrote, as variants: what `make test-python` holds to the reference. Each says in its
features what its documentation says that it takes; what it takes by an argument that means the same is given so."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TRITON_INTERPRET", "1")  # before triton is imported; there is no GPU

import attnbench

ALL = ["band", "offset", "key_lengths", "gqa"]
TYPES = ["f32", "bf16", "f16"]


def plain(problem: attnbench.Problem) -> str | None:
    """What all of them take: tensors with elements, and an output of the inputs' type."""
    sizes = problem.batch, problem.query_heads, problem.query_length, problem.key_length, problem.value_dim
    if min(sizes) == 0:
        return "takes no empty tensors"
    return None if problem.types["output"] == problem.type else "writes the type that it reads"


def zero_blind_rows(call: attnbench.Call, xp: Any, output: Any) -> Any:
    """What a query gives that sees no key, or none whose bias is above -inf, libraries leave open, or say each in its way
    (docs/conventions.md): here zeros."""
    seen = call.visible()
    if call.bias is not None:
        finite = call.bias > -math.inf
        seen = finite if seen is None else seen & finite
    return output if seen is None else xp.where(seen.any(-1)[..., None], output, 0)


# ---- PyTorch ----


def torch_kernels() -> tuple[str, list[Any]]:
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    from torch.nn.functional import scaled_dot_product_attention

    torch.set_grad_enabled(False)

    @attnbench.variant(features=[*ALL, "mask", "bias"], dtypes=TYPES, framework="torch", accepts=plain, finite=True)
    def torch_sdpa(call: attnbench.Call) -> Any:
        """torch.nn.functional.scaled_dot_product_attention on the processor"""
        seen, bias, plain_causal = None, call.bias, call.causal and call.lengths is None and call.mask is None
        if not (plain_causal and bias is None):
            plain_causal, seen = False, call.visible()
        if bias is not None and seen is not None:
            seen = torch.where(seen, bias, torch.full((), -torch.inf, dtype=bias.dtype))
        elif bias is not None:
            seen = bias
        if seen is not None:
            seen = seen.expand(-1, -1, call.query_length, call.key_length)
        output = scaled_dot_product_attention(
            call.q, call.k, call.v, seen, is_causal=plain_causal, scale=call.scale, enable_gqa=call.groups > 1
        )
        return zero_blind_rows(call, torch, output)

    @attnbench.variant(features=[*ALL, "mask", "bias", "softcap", "lse"], dtypes=TYPES, framework="torch", accepts=plain, finite=True)
    def torch_flex(call: attnbench.Call) -> Any:
        """torch.nn.attention.flex_attention, not compiled: mask_mod for what is hidden, score_mod for softcap and bias"""
        seen = call.visible()
        B, H, Tq, Tk = call.batch, call.query_heads, call.query_length, call.key_length
        blocks = None
        if seen is not None:
            seen = seen.expand(B, H, Tq, Tk)
            blocks = create_block_mask(lambda b, h, i, j: seen[b, h, i, j], B, H, Tq, Tk, device="cpu")
        bias = None if call.bias is None else call.bias.expand(B, H, Tq, Tk)

        def score(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
            if call.softcap:
                score = call.softcap * torch.tanh(score / call.softcap)
            return score if bias is None else score + bias[b, h, i, j]

        changed = score if call.softcap or bias is not None else None
        return flex_attention(
            call.q, call.k, call.v, changed, blocks, call.scale, enable_gqa=call.groups > 1, return_lse=True
        )

    return torch.__version__, [torch_sdpa, torch_flex]


# ---- JAX ----


def jax_kernels() -> tuple[str, list[Any]]:
    import jax
    import jax.numpy as jnp

    def takes(problem: attnbench.Problem) -> str | None:
        return plain(problem) or (None if problem.value_dim == problem.head_dim else "takes values as wide as keys")

    @attnbench.variant(features=[*ALL, "mask", "bias"], dtypes=TYPES, framework="jax", accepts=takes, finite=True)
    def jax_attention(call: attnbench.Call) -> Any:
        """jax.nn.dot_product_attention, implementation xla"""
        heads = [x.swapaxes(1, 2) for x in (call.q, call.k, call.v)]
        output = jax.nn.dot_product_attention(
            *heads,
            bias=call.bias,
            mask=None if call.causal and call.lengths is None and call.mask is None else call.visible(),
            scale=call.scale,
            is_causal=bool(call.causal),
            implementation="xla",
        )
        return zero_blind_rows(call, jnp, jnp.swapaxes(output, 1, 2))

    return jax.__version__, [jax_attention]


# ---- ONNX Runtime ----


def onnx_kernels() -> tuple[str, list[Any]]:
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper

    def takes(problem: attnbench.Problem) -> str | None:
        return plain(problem) or (None if problem.scale > 0 else "takes scales above 0")

    @attnbench.variant(
        features=[*ALL, "mask", "bias", "softcap"], dtypes=["f32", "f16"], accepts=takes, finite=True
    )
    def onnx_attention(call: attnbench.Call) -> Any:
        """the Attention operator of ONNX, opset 23, in ONNX Runtime on the processor"""
        element = TensorProto.FLOAT if call.problem.type == "f32" else TensorProto.FLOAT16
        given = {"Q": call.q, "K": call.k, "V": call.v}
        causal = call.causal and call.lengths is None
        seen = call.visible() if not causal or call.mask is not None else None
        if call.bias is not None:  # the lowest number hides as -inf does (docs/findings.md)
            lowest = np.finfo(call.bias.dtype).min
            own = np.where(call.bias == lowest, np.nextafter(lowest, lowest * 0), call.bias)
            bias = np.broadcast_to(own, np.broadcast_shapes(own.shape, () if seen is None else seen.shape))
            given["attn_mask"] = bias if seen is None else np.where(seen, bias, np.array(-np.inf, bias.dtype))
        elif seen is not None:
            given["attn_mask"] = seen
        if "attn_mask" in given:  # it refuses masks that broadcast over queries or keys (docs/findings.md)
            mask, scores = given["attn_mask"], (1, 1, call.q.shape[2], call.k.shape[2])
            given["attn_mask"] = np.broadcast_to(mask, np.broadcast_shapes(mask.shape, scores))
        given = {name: np.ascontiguousarray(x) for name, x in given.items()}

        def info(name: str, x: Any) -> Any:
            return helper.make_tensor_value_info(name, TensorProto.BOOL if x.dtype == bool else element, x.shape)

        node = helper.make_node(
            "Attention", list(given), ["Y"], is_causal=int(causal), scale=call.scale, softcap=call.softcap
        )
        output = helper.make_tensor_value_info("Y", element, call.problem.shape("output"))
        graph = helper.make_graph([node], "attention", [info(*pair) for pair in given.items()], [output])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = call.threads, 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return zero_blind_rows(call, np, session.run(None, given)[0])

    return onnxruntime.__version__, [onnx_attention]


# ---- Triton, interpreted ----


def triton_kernels() -> tuple[str, list[Any]]:
    import torch  # noqa: F401
    import triton

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
    from triton_attention import attention

    def takes(problem: attnbench.Problem) -> str | None:
        large = problem.left is not None and problem.left > 1 << 30 or problem.right is not None and problem.right > 1 << 30
        return plain(problem) or ("takes distances below 2^30" if large or abs(problem.offset) > 1 << 30 else None)

    @attnbench.variant(
        features=["band", "offset", "gqa", "lse"], dtypes=TYPES, framework="torch", accepts=takes, finite=True, flops_per_second=1e6
    )
    def triton_tutorial(call: attnbench.Call) -> Any:
        """bindings/python/examples/triton_attention.py in Triton's interpreter"""
        if call.offsets is not None:
            parts = [attention(call.q[b : b + 1], call.k[b : b + 1], call.v[b : b + 1], call.scale, call.left, call.right, int(o)) for b, o in enumerate(call.offsets)]
            return tuple(torch.cat(part) for part in zip(*parts))
        return attention(call.q, call.k, call.v, call.scale, call.left, call.right, call.offset)

    return triton.__version__, [triton_tutorial]


# Each library, and what makes its variants; ImportError where it is not installed.
LIBRARIES: dict[str, Callable[[], tuple[str, list[Any]]]] = {
    "PyTorch": torch_kernels,
    "JAX": jax_kernels,
    "ONNX Runtime": onnx_kernels,
    "Triton": triton_kernels,
}

# What docs/findings.md says of them: (kernel, what its problem lines have, the finding).
KNOWN = [
    ("jax_attention", r"fill:denormal", "jax-denormals-are-zeros"),
    ("onnx_attention", r"/f16", "onnx-scores-of-float16"),
    ("torch_sdpa", r"/f16.*fill:exact", "torch-sdpa-in-the-exact-probe-of-float16"),
    ("torch_sdpa", r"^causal/(?!.*/(lengths|mask|bias)).*/scale:(0(/|$)|-)", "torch-sdpa-causal-of-a-scale-not-above-0"),
    ("torch_flex", r"/b?f16.*fill:exact", "torch-flex-rounds-weights-after-their-sum"),
]
