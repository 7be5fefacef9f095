"""Attention kernels of Python, held to a double-precision reference under an error bound that is computed from the input.

    x = attnbench.inputs("causal/B:2/H:8/D:64/T:1000/bf16")
    attnbench.judge(x, output=mine(x.q, x.k, x.v)).assert_close()

docs/python.md of the repository shows the rest."""

from ._arrays import to_bfloat16, to_float32
from ._commands import Result, bench, fuzz, verify
from ._kernel import Kernel, median
from ._native import library as _library
from ._problem import FEATURES, Inputs, Problem, inputs, parse, problems
from ._variant import Call, Variant, run, variant
from ._verdict import Verdict, judge

__version__ = _library.attnbench_version().decode()
__all__ = [
    *("FEATURES", "Call", "Inputs", "Kernel", "Problem", "Result", "Variant", "Verdict", "bench", "fuzz", "inputs", "judge"),
    "median",
    *("parse", "problems", "run", "to_bfloat16", "to_float32", "variant", "verify"),
]
