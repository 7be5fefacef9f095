"""Arrays from anywhere held to the reference and its error bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arrays, _native
from ._problem import PATTERN, Inputs, Problem, inputs, parse, short


class Verdict:
    """Whether outputs are right: true or false, three lines as text, four with a hint."""

    def __init__(self, said: dict, words: str, line: str, judged: tuple[str, ...] = ("output",), drawn: bool = True) -> None:
        worst = said.get("worst") or {}

        def number(key: str) -> float:
            return float(worst.get(key, 0))  # "nan" and "inf" too

        self.ok: bool = said["ok"]
        self.problem: str = line
        self.tensor: str = worst.get("tensor", "output")
        self.where: dict[str, int] = {axis: worst[axis] for axis in "bhie" if axis in worst}
        self.worst_share = number("share")
        self.computed, self.expected, self.bound = number("computed"), number("expected"), number("bound")
        self.sentence: str = said.get("sentence") or ""
        self.pattern: str = said.get("pattern") or ""
        self.kind: str = said.get("kind") or ""
        self.hint: str = said.get("hint") or ""
        self.json, self._words = said, words.rstrip("\n")
        self._judged, self._drawn = judged, drawn

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self._words

    def __repr__(self) -> str:
        return f"<{'right' if self.ok else 'wrong'}: {self.worst_share:.3g} of the bound on {self.problem}>"

    def assert_close(self, message: str = "") -> None:
        """Raises AssertionError with all that it takes to see the failure again."""
        if self.ok:
            return
        head = f"{message}\n" if message else ""
        inputs = f"the inputs: attnbench.inputs({self.problem!r}); " if self._drawn else ""
        given = ", ".join(f"{name}=..." for name in self._judged)
        raise AssertionError(f"{head}{self}\n{inputs}the verdict: attnbench.judge({self.problem!r}, {given})")


def _checked(asked: Problem, tensor: str, given: Any) -> tuple[np.ndarray, str, list[int]]:
    """A view of four axes, its type and its strides."""
    name = short(tensor)
    array, kind = _arrays.as_numpy(given, name)
    allowed = [asked.shape(tensor)]
    if tensor in asked.types and asked.stored_shape(tensor) not in allowed:
        allowed.append(asked.stored_shape(tensor))
    if tensor == "lse":
        allowed.append((*asked.shape(tensor), 1))
    if array.shape not in allowed:
        raise ValueError(f"{name} has shape {list(array.shape)}, and this problem's has {list(allowed[0])}")
    if kind == "i32" and asked.types.get(tensor) != "i32":
        raise ValueError(f"{name} has elements of type int32: numbers are float32, bfloat16, float16 or float64")
    if tensor in ("mask", "bias", "bias_grad", *PATTERN):  # what is broadcast is so by a stride of 0
        whole, array = array, array[tuple(slice(0, size) for size in asked.stored_shape(tensor))]
        if array.shape != whole.shape and np.broadcast_to(array, whole.shape).tobytes() != whole.tobytes():
            axes = "".join(letter for letter, all, one in zip("bhq", whole.shape, array.shape) if all != one)
            raise ValueError(
                f"{name} differs along {', '.join(axes)}, which this problem's is the same along: name all axes that it has in the line, "
                f"as in mask:bhq, or give one of shape {list(array.shape)}"
            )
    if array.ndim < 4:  # of one element along each axis that it has not
        array = array[tuple(slice(None) if axis in asked.axes(tensor) else None for axis in range(4))]
    return array, kind, list(array.strides)


def _check_unchanged(drawn: Inputs) -> None:
    again = inputs(drawn.problem)
    for name, array in drawn.items():
        now, before = _arrays.as_numpy(array, name)[0], again[name]
        if now.shape != before.shape or now.dtype.itemsize != before.dtype.itemsize:
            raise ValueError(f"{name} is not the array that was drawn: numbers of one's own are given as judge(line, {name}=...)")
        if np.ascontiguousarray(now).tobytes() != np.ascontiguousarray(before).tobytes():
            raise ValueError(f"{name} was changed since it was drawn: numbers of one's own are given as judge(line, {name}=...)")


def judge(
    problem: str | Problem | Inputs,
    output: Any = None,
    lse: Any = None,
    weights: Any = None,
    *,
    seed: int = 1,
    hint: bool = True,
    **own: Any,
) -> Verdict:
    """Holds an output, and where they are given the log-sum-exp and the weights, to what the reference says of the problem, whose
    inputs are drawn again unless other ones are given (q=, k=, v=, mask=, bias=, sink=, and so on under the names of `inputs`). Of the backward
    pass it takes query_grad=, key_grad=, value_grad=, and bias_grad=, sink_grad=, decay_grad=, state_grad= and state_sum_grad= where there are such; of linear attention with a
    final state final_state= and, where sums are normalised, final_state_sum=. ValueError where there is nothing to judge: a wrong shape or type."""
    drawn = problem if isinstance(problem, Inputs) else None
    asked = drawn.problem if drawn else problem if isinstance(problem, Problem) else parse(problem, seed)  # type: ignore[arg-type]
    if output is None and not asked.function.endswith("backward"):
        raise ValueError("judge takes an output: judge(problem, output=o)")
    long = {short(tensor): tensor for tensor in asked.types}
    for name in own:
        if name not in long:
            raise ValueError(f"this problem has no {name}: it has {', '.join(long)}")
    given = {"output": output, "lse": lse, "weights": weights}
    given.update({long[name]: array for name, array in own.items()})
    if drawn:
        _check_unchanged(drawn)
    arrays, kept = [], []
    for tensor, array in given.items():
        if array is None:
            continue
        view, kind, strides = _checked(asked, tensor, array)
        kept.append(view)
        arrays.append(
            _native.Array(tensor.encode(), view.ctypes.data, kind.encode(), (_native.c_int64 * 4)(*strides))
        )
    said, words = _native.judge(asked.line, arrays, hint)
    drawn_again = not any(long[name] in asked.inputs for name in own)
    return Verdict(said, words, asked.line, tuple(short(name) for name, array in given.items() if array is not None), drawn_again)
