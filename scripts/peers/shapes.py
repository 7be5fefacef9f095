"""What is measured: problems as lines of the suite, and its module for Python (bindings/python) that draws and judges them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import numpy as np

from options import ROOT
from patterns import PATTERNS

os.environ.setdefault("ATTNBENCH_HOME", str(ROOT))
sys.path.insert(0, str(ROOT / "bindings" / "python"))

import attnbench  # noqa: E402


@dataclass(frozen=True)
class Held:
    """How an output compared with the reference."""

    bound_share: float  # the worst error, as a share of its bound
    mean_square_share: float  # the root mean square of all, as a share of what fails
    problem: str  # what is wrong in words, or ""


@dataclass(frozen=True)
class Interval:
    """A median and the ends of its 95% interval."""

    estimate: float
    low: float
    high: float


def median(values: list[float]) -> Interval:
    return Interval(*attnbench.median(values))


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
    backward: bool = False

    def queries(self) -> int:
        return self.query_length or self.length

    def groups(self) -> int:
        """Query heads that share a key/value head."""
        return self.heads // (self.kv_heads or self.heads)

    def family(self) -> str:
        mask = PATTERNS[self.mask].band if self.mask in PATTERNS else self.mask
        if mask == "causal" and self.queries() < self.length:
            mask = "causal_bottom_right"
        return f"{'backward/' if self.backward else ''}{mask}/B:{self.batch}/H:{self.heads}/Hkv:{self.kv_heads or self.heads}/D:{self.head_dim}"

    def workload(self) -> str:
        same = self.queries() == self.length
        lengths = f"T:{self.length}" if same else f"Tq:{self.queries()}/Tk:{self.length}"
        parts = [self.family(), lengths]
        if self.mask in PATTERNS:
            parts.append(PATTERNS[self.mask].part)
        return "/".join(parts if self.type == "f32" else [*parts, self.type])

    def dims(self, name: str = "query") -> tuple[int, int, int, int]:
        """Of query and output, or of key and value."""
        if name in ("key", "value"):
            return self.batch, self.kv_heads or self.heads, self.length, self.head_dim
        return self.batch, self.heads, self.queries(), self.head_dim

    def array_type(self) -> np.dtype:
        """numpy has no bfloat16: its bits stand in for it."""
        return np.dtype({"f32": np.float32, "bf16": np.uint16, "f16": np.float16}[self.type])

    def line(self) -> str:
        return f"{self.workload()}/seed:{self.seed}"

    def hold(self, output: np.ndarray | dict[str, np.ndarray]) -> Held:
        """An output, or the gradients by their names."""
        outputs = output if isinstance(output, dict) else {"output": output}
        try:
            verdict = attnbench.judge(self.line(), hint=False, **outputs)
        except ValueError as error:
            return Held(float("inf"), float("inf"), str(error))
        return Held(verdict.worst_share, verdict.json["mean_square_share"], verdict.sentence)
