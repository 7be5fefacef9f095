"""The suite's own inputs, variants, reference and statistics, through build/peers/suite.so (suite.c)."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from ctypes import POINTER, c_bool, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from pathlib import Path

import numpy as np


class _Verdict(ctypes.Structure):
    _fields_ = [
        ("passed", c_bool),
        ("bound_share", c_double),
        ("mean_square_share", c_double),
        ("problem", c_char * 256),
    ]


@dataclass(frozen=True)
class Held:
    """How an output compared with the reference."""

    bound_share: float  # the worst error, as a share of its bound
    mean_square_share: float  # the root mean square of all, as a share of what fails
    problem: str  # what is wrong in words, or ""


class Interval(ctypes.Structure):
    """A median and the ends of its 95% interval."""

    _fields_ = [("estimate", c_double), ("low", c_double), ("high", c_double)]


@dataclass(frozen=True)
class Shape:
    """One problem: as many keys as the length says, and as many queries, or fewer, which are then the last ones."""

    mask: str
    batch: int
    heads: int
    head_dim: int
    length: int
    seed: int
    type: str = "f32"
    kv_heads: int = 0  # as many as query heads
    query_length: int | None = None  # as many as keys

    def queries(self) -> int:
        return self.query_length or self.length

    def groups(self) -> int:
        """Query heads that share a key/value head."""
        return self.heads // (self.kv_heads or self.heads)

    def family(self) -> str:
        mask = "causal_bottom_right" if self.mask == "causal" and self.queries() < self.length else self.mask
        return f"{mask}/B:{self.batch}/H:{self.heads}/Hkv:{self.kv_heads or self.heads}/D:{self.head_dim}"

    def workload(self) -> str:
        same = self.queries() == self.length
        lengths = f"T:{self.length}" if same else f"Tq:{self.queries()}/Tk:{self.length}"
        return f"{self.family()}/{lengths}" + ("" if self.type == "f32" else f"/{self.type}")

    def dims(self, name: str = "query") -> tuple[int, int, int, int]:
        """Of query and output, or of key and value."""
        if name in ("key", "value"):
            return self.batch, self.kv_heads or self.heads, self.length, self.head_dim
        return self.batch, self.heads, self.queries(), self.head_dim

    def array_type(self) -> np.dtype:
        """numpy has no bfloat16: its bits stand in for it."""
        return np.dtype({"f32": np.float32, "bf16": np.uint16, "f16": np.float16}[self.type])


class SuiteError(Exception):
    """What the suite says in words of why it cannot do something."""


class Suite:
    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library))
        why = (c_char_p, c_size_t)
        signatures: dict[str, tuple[object, tuple[object, ...]]] = {
            "suite_open": (c_void_p, (c_char_p, *why)),
            "suite_close": (None, (c_void_p,)),
            "suite_query": (c_void_p, (c_void_p,)),
            "suite_key": (c_void_p, (c_void_p,)),
            "suite_value": (c_void_p, (c_void_p,)),
            "suite_output": (c_void_p, (c_void_p,)),
            "suite_flops": (c_double, (c_void_p,)),
            "suite_variant": (c_void_p, (c_char_p, c_char_p, *why)),
            "suite_prepare": (c_bool, (c_void_p, c_void_p, c_int, *why)),
            "suite_run": (None, (c_void_p, c_void_p, c_int)),
            "suite_hold": (c_bool, (c_void_p, c_void_p, c_int64, POINTER(_Verdict), *why)),
            "suite_median": (Interval, (POINTER(c_double), c_size_t)),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
        self._why = ctypes.create_string_buffer(1024)

    def ask(self, name: str, *arguments: object) -> int:
        """Calls a function that fills in a reason where it returns false or NULL."""
        answer = getattr(self.library, name)(*arguments, self._why, len(self._why))
        if not answer:
            raise SuiteError(self._why.value.decode(errors="replace"))
        return answer

    def variant(self, plugin: Path, name: str) -> int:
        return self.ask("suite_variant", str(plugin).encode(), name.encode())

    def median(self, values: Sequence[float]) -> Interval:
        return self.library.suite_median((c_double * len(values))(*values), len(values))


class Case:
    """One problem with its inputs."""

    def __init__(self, suite: Suite, shape: Shape) -> None:
        self.suite, self.shape = suite, shape
        self.handle = suite.ask("suite_open", f"{shape.workload()}/seed:{shape.seed}".encode())
        self.flops: float = suite.library.suite_flops(self.handle)
        weakref.finalize(self, suite.library.suite_close, self.handle)

    def tensor(self, name: str) -> np.ndarray:
        """A view of query, key, value or output, [B, H, T, D] of it."""
        address = getattr(self.suite.library, f"suite_{name}")(self.handle)
        kind = self.shape.array_type()
        bits = ctypes.c_uint32 if kind.itemsize == 4 else ctypes.c_uint16
        return np.ctypeslib.as_array(ctypes.cast(address, POINTER(bits)), self.shape.dims(name)).view(kind)

    def prepare(self, variant: int, threads: int) -> None:
        self.suite.ask("suite_prepare", self.handle, variant, threads)

    def run(self, variant: int, threads: int) -> None:
        self.suite.library.suite_run(self.handle, variant, threads)

    def hold(self, output: np.ndarray) -> Held:
        packed, kind = np.ascontiguousarray(output), self.shape.array_type()
        if packed.shape != self.shape.dims() or packed.dtype != kind:
            found, wanted = f"{packed.shape} of {packed.dtype}", f"{self.shape.dims()} of {kind}"
            return Held(float("inf"), float("inf"), f"the output has shape {found} and not {wanted}")
        rows = 64  # a fraction of a second at T = 8192, D = 128
        verdict = _Verdict()
        self.suite.ask("suite_hold", self.handle, packed.ctypes.data, rows, ctypes.byref(verdict))
        problem = "" if verdict.passed else verdict.problem.decode(errors="replace")
        return Held(verdict.bound_share, verdict.mean_square_share, problem)
