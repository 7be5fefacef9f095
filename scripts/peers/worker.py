"""A process for each implementation, stopped while another one is measured.

In one process the thread pools of several libraries would spin against each other. Here each has a
process to itself with the library's own settings for waiting, and whoever is not measured is stopped by
a signal: it can disturb nobody, whatever its threads were doing.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from implementations import Candidate, Inputs

# A call that takes longer needs no other before it to warm caches and processor.
_LONG_SECONDS = 0.5
_PR_SET_PDEATHSIG = 1


class WorkerError(Exception):
    """What an implementation says of why it cannot do something."""


@dataclass(frozen=True)
class Ready:
    """A problem was made ready."""

    kernel: str  # the candidate that was faster
    seconds: float  # of one call
    output: np.ndarray | dict[str, np.ndarray]


def _seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


class _Implementation:
    """What runs inside a worker: one implementation, and the candidate that is measured."""

    def __init__(self, make: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.implementation = make(*arguments)
        self.chosen: Candidate | None = None
        self.seconds = 0.0

    def version(self) -> str:
        return self.implementation.version()

    def prepare(self, inputs: Inputs, kernel: str = "") -> Ready:
        """The faster candidate, or the one of that name."""
        self.chosen = None
        for candidate in self.implementation.candidates(inputs):
            if kernel and candidate.name != kernel:
                continue
            seconds = _seconds(candidate.run)  # together with what is made at a first call only
            if seconds < _LONG_SECONDS:
                seconds = min(_seconds(candidate.run) for _ in range(3))
            if self.chosen is None or seconds < self.seconds:
                self.chosen, self.seconds = candidate, seconds
        assert self.chosen
        return Ready(self.chosen.name, self.seconds, self.chosen.output())

    def measure(self, seconds: float) -> float:
        """Seconds of one call, over as many calls as take the time."""
        assert self.chosen
        run = self.chosen.run
        if self.seconds < _LONG_SECONDS:
            run()
        calls = range(max(1, round(seconds / self.seconds)))
        if self.chosen.clock:
            return self.chosen.clock(len(calls)) / len(calls)
        start = time.perf_counter()
        for _ in calls:
            run()
        return (time.perf_counter() - start) / len(calls)

    def output(self) -> np.ndarray | dict[str, np.ndarray]:
        """What the last call wrote."""
        assert self.chosen
        return self.chosen.output()


def _serve(pipe: Connection, make: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # a stopped process outlives nobody
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    implementation: Any = None
    while True:
        name, values = pipe.recv()
        try:
            if name == "start":
                implementation = _Implementation(make, arguments)
                answer = implementation.version()
            else:
                answer = getattr(implementation, name)(*values)
            pipe.send((True, answer))
        except Exception as error:  # whatever a library raises is its answer
            text = " ".join(str(error).split())[:300]
            # What is wrong with a value is a sentence already, ours among them.
            pipe.send((False, text if type(error) is ValueError else f"{type(error).__name__}: {text}"))


class Worker:
    """An implementation in a process of its own, which runs only while it is asked something."""

    def __init__(self, name: str, threads: int, make: Callable[..., Any], *arguments: Any) -> None:
        self.name = name
        self.pipe, theirs = multiprocessing.Pipe()
        # OpenMP and its like read this when they are loaded.
        os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(threads)
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=_serve, args=(theirs, make, (threads, *arguments)), daemon=True)
        self.process.start()
        theirs.close()
        try:
            self.version: str = self._ask("start")
        except BaseException:  # Ctrl-C too: a stopped process would be waited for at the end
            self.end()
            raise

    def _ask(self, name: str, *values: Any) -> Any:
        assert self.process.pid
        try:
            os.kill(self.process.pid, signal.SIGCONT)
            self.pipe.send((name, values))
            good, answer = self.pipe.recv()
            os.kill(self.process.pid, signal.SIGSTOP)
        except (EOFError, OSError):
            self.process.join(1)
            raise WorkerError(f"its process ended with status {self.process.exitcode}") from None
        if not good:
            raise WorkerError(answer)
        return answer

    def prepare(self, inputs: Inputs, kernel: str = "") -> Ready:
        return self._ask("prepare", inputs, kernel)

    def measure(self, seconds: float) -> float:
        return self._ask("measure", seconds)

    def output(self) -> np.ndarray | dict[str, np.ndarray]:
        return self._ask("output")

    def end(self) -> None:
        self.process.kill()
        self.process.join()
