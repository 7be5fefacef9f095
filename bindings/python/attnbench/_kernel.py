"""A variant of the suite, or of somebody's plugin, made ready for one problem: to be timed in turns with other libraries."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from . import _native
from ._problem import extent, parse, view


class Kernel:
    """plugin: a shared object of variants; device: which one of its kind, where the variant computes on one."""

    def __init__(self, problem: str, variant: str, plugin: str | Path, threads: int = 1, device: int = 0) -> None:
        self.problem = parse(problem)
        self._handle = _native.ready(self.problem.line, str(plugin), variant, device, threads)
        weakref.finalize(self, _native.library.attnbench_release, self._handle)

    def run(self, calls: int = 1) -> float:
        """Seconds that so many calls took, by the clock of the device that they ran on."""
        return _native.library.attnbench_repeat(self._handle, calls)

    def output(self) -> np.ndarray:
        """A copy of what the last call wrote."""
        return self._copy("output", _native.library.attnbench_output(self._handle))

    def gradient(self, tensor: str) -> np.ndarray:
        """The same of the backward pass on the host: query_grad, key_grad, value_grad, bias_grad, sink_grad, decay_grad, state_grad or state_sum_grad."""
        address = _native.library.attnbench_written(self._handle, tensor.encode())
        if tensor not in self.problem.types or not address:
            raise ValueError(f"{tensor} is nothing that this problem asks for")
        return self._copy(tensor, address)

    def _copy(self, tensor: str, address: int) -> np.ndarray:
        size = extent(self.problem, tensor)
        memory = ctypes.create_string_buffer(ctypes.string_at(address, size), size) if size else b""
        return view(self.problem, tensor, memory, 0)


def median(values: Sequence[float]) -> tuple[float, float, float]:
    """A median and the ends of its 95% interval, by the ranks of the values: their extremes where they are few."""
    found = (ctypes.c_double * 3)()
    _native.library.attnbench_median((ctypes.c_double * len(values))(*values), len(values), found)
    return tuple(found)
