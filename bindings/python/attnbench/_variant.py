"""Functions of Python as variants: what one says of itself, and what it is given at each call."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from . import _arrays
from ._problem import FEATURES, FUNCTIONS, KINDS, TYPES, Inputs, Problem, check_words, extent, inputs, parse, refusal, refused, short, view
from ._verdict import Verdict, judge

# Traits of variants/attention.h, and limits of bindings/python/native/bridge.c.
FREE_BITS, FINITE = 1 << 3, 1 << 4
ONLY_CAUSAL, NO_SHARED_KEYS, ASKED = 1, 2, 4
OUTPUTS = ("output", "lse", "weights")


class Call:
    """One call: the problem's numbers as attributes (scale, causal, left, right, offset, softcap, lengths, groups, ...), its tensors (q,
    k, v, mask, bias, sink), and the memory of what is wanted (output, lse, weights; None: not wanted)."""

    def __init__(self, problem: Problem, arrays: dict[str, Any], threads: int, framework: str, device: Any) -> None:
        self.problem, self.threads, self.framework, self.device = problem, threads, framework, device
        self._arrays = arrays

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._arrays:
            return self._arrays[name]
        if name in ("q", "k", "v", "mask", "bias", "sink", *OUTPUTS):
            return None
        if name in ("lengths", "key_lengths", "offsets"):
            numbers = getattr(self.problem, "key_lengths" if name == "lengths" else name)
            return None if numbers is None else _arrays.to_framework(np.array(numbers, np.int64), self.framework, self.device)
        return getattr(self.problem, name)

    def visible(self) -> Any:
        """Which keys each query sees by band, key lengths and mask, as bools that broadcast to [B, H, Tq, Tk]; None: all."""
        mask = self._arrays.get("mask")
        seen = self.problem.visible(None if mask is None else _arrays.as_numpy(mask, "mask")[0])
        return None if seen is None else _arrays.to_framework(np.ascontiguousarray(seen), self.framework, self.device)


class Variant:
    """A function with what it says of itself; it can be called as before."""

    def __init__(self, function: Callable[[Call], Any], **said: Any) -> None:
        self.run = function
        self.__dict__.update(said)
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.run(*arguments, **named)

    def __repr__(self) -> str:
        return f"<variant {self.name}>"

    def refusal(self, problem: Problem) -> str | None:
        """Why it does not take a problem; None: it does."""
        reason = refusal(problem, self.computes, self.features, self.dtypes)
        return reason or (refused(self.accepts, problem) if self.accepts else None)

    def solve(self, problem: Problem, arrays: dict[str, np.ndarray], threads: int) -> float:
        """Runs it once on these arrays, which hold the outputs afterwards; the seconds that it took."""
        framework, device = self.framework, self.device
        given = {short(name): _arrays.to_framework(array, framework, device) for name, array in arrays.items()}
        call = Call(problem, given, threads, framework, device)
        wait = self._prepare(threads)
        start = time.perf_counter()
        returned = self.run(call)
        wait(returned)
        seconds = time.perf_counter() - start
        self._take(returned, given, arrays)
        return seconds

    def _prepare(self, threads: int) -> Callable[[Any], None]:
        """What has to be done before a run, and what to wait for behind it."""
        if self.framework == "torch":
            import torch

            torch.set_num_threads(threads)
            if self.device is not None and torch.device(self.device).type == "cuda":
                torch.cuda.synchronize(self.device)
                return lambda _: torch.cuda.synchronize(self.device)
        if self.framework == "jax":
            import jax

            return lambda returned: jax.block_until_ready(returned)
        if self.framework == "cupy":
            import cupy

            return lambda _: cupy.cuda.get_current_stream().synchronize()
        return lambda _: None

    def _take(self, returned: Any, given: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        shares = self.framework == "numpy" or (self.framework == "torch" and self.device is None)
        parts = returned if isinstance(returned, (tuple, list)) else (returned,)
        if len(parts) > len(OUTPUTS):
            raise ValueError(f"{self.name} returned {len(parts)} things: output, log-sum-exp and weights are most")
        for name, part in zip(OUTPUTS, (*parts, None, None, None)):
            if name not in arrays:
                continue
            if part is not None and part is not given[name]:
                _arrays.put_into(arrays[name], part, name)
            elif not shares and self.framework != "jax":  # written where it lay, on its device
                _arrays.put_into(arrays[name], given[name], name)


def variant(
    function: Callable[[Call], Any] | None = None,
    *,
    name: str | None = None,
    summary: str | None = None,
    features: Iterable[str] = (),
    dtypes: Iterable[str] = ("f32",),
    computes: str = "softmax",
    framework: str = "numpy",
    device: Any = None,
    accepts: Callable[[Problem], Any] | None = None,
    finite: bool = False,
    time_exponent: int = 2,
    flops_per_second: float = 0,
) -> Any:
    """Wraps a function of a call as a variant. features: what it takes beyond q, k, v and a scale ('causal', 'gqa', 'band', 'offset',
    'key_lengths', 'mask', 'bias', 'softcap', 'sink', 'lse', 'weights'). dtypes: 'f32', 'bf16', 'f16'. computes: 'softmax' or
    'linear'. framework and device: of the tensors that it is given. accepts: asked of each Problem, None where it takes it, else
    the reason in words. finite: NaN, infinities and numbers whose products overflow are not its matter. time_exponent: how its
    time grows with T. flops_per_second: what it makes at least, where that is less than plain loops in C; runs are given time by it."""
    if function is None:
        said = {key: value for key, value in locals().items() if key != "function"}
        return lambda wrapped: variant(wrapped, **said)
    if not callable(function):
        raise ValueError(f"a variant is a function of a call, not {type(function).__name__}")
    name = name or getattr(function, "__name__", "mine")
    if not re.fullmatch(r"[a-z0-9_]{1,47}", name):
        raise ValueError(f"a variant's name is one word of a-z, 0-9 and _, of at most 47 letters, not {name!r}: give it name=")
    if framework not in _arrays.FRAMEWORKS:
        raise ValueError(f"a framework is {', '.join(_arrays.FRAMEWORKS)}, not {framework!r}")
    if computes not in FUNCTIONS:
        raise ValueError(f"computes is softmax or linear, not {computes!r}")
    if accepts is not None and not callable(accepts):
        raise ValueError("accepts is a function of a problem")
    dtypes = check_words(dtypes, TYPES, "type")
    if not dtypes:
        raise ValueError("a variant takes one type at least, such as dtypes=['f32']")
    words = summary or (inspect.getdoc(function) or "a function of Python").splitlines()[0]
    return Variant(
        function,
        name=name,
        summary=words,
        features=check_words(features, (*KINDS, *FEATURES), "feature"),
        dtypes=dtypes,
        computes=computes,
        framework=framework,
        device=device,
        accepts=accepts,
        finite=bool(finite),
        time_exponent=int(time_exponent),
        flops_per_second=float(flops_per_second),
    )


def line_of(said: Variant) -> str:
    """As bridge.c reads it."""
    takes = set(said.features)
    bits = sum(FEATURES[word] for word in takes if word in FEATURES)
    only_causal = "causal" in takes and "band" not in takes
    if only_causal:
        bits |= FEATURES["band"]
    limits = ONLY_CAUSAL * only_causal | NO_SHARED_KEYS * ("gqa" not in takes) | ASKED * (said.accepts is not None)
    types = sum(1 << TYPES[word] for word in said.dtypes)
    traits = FREE_BITS | FINITE * said.finite
    summary = " ".join(said.summary.split())[:200]
    return f"{said.name} {FUNCTIONS.index(said.computes)} {bits} {types} {traits} {said.time_exponent} {limits} {summary}"


def run(said: Variant, problem: str | Problem | Inputs, seed: int = 1, threads: int = 1) -> Verdict:
    """Runs a variant on one problem in this process and judges what it gave."""
    if not isinstance(said, Variant):
        raise ValueError(f"a variant is what @attnbench.variant made, not {type(said).__name__}")
    drawn = problem if isinstance(problem, Inputs) else inputs(problem, seed)
    asked = drawn.problem
    reason = said.refusal(asked)
    if reason:
        raise ValueError(f"{said.name} {reason}: {asked.line}")
    arrays = {tensor: _arrays.as_numpy(drawn[short(tensor)], tensor)[0] for tensor in asked.types if short(tensor) in drawn}
    for tensor in arrays:  # bits of a bfloat16, and bytes of a mask, as they are given
        arrays[tensor] = arrays[tensor].view(_arrays.NUMPY[asked.types[tensor]])
    for tensor in OUTPUTS:
        if tensor in asked.types:
            memory = np.full(extent(asked, tensor), 0xFF, np.uint8)  # NaN of every type
            arrays[tensor] = view(asked, tensor, memory, 0)
    said.solve(asked, arrays, threads)
    return judge(drawn, **{tensor: arrays[tensor] for tensor in OUTPUTS if tensor in arrays})
