"""Runs the program as a child and the functions that it asks for in this process (bindings/python/native/bridge.c).

The tensors of a call lie in memory that both map; questions come over a socket, one line of JSON each, and answers go back
as "PID ID SECONDS WORDS", where words say what went wrong."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, TextIO

import numpy as np

from . import _native
from ._problem import FUNCTIONS, TYPE_CODES, Problem, _limit, refused, view
from ._variant import Variant, line_of

MESSAGE_BYTES = 8192
WORDS_BYTES = 160
PATIENCE_SECONDS = 5


class Abandoned(BaseException):
    """Raised in a function whose run the program has given up."""


def last_line(error: BaseException) -> str:
    """Of a traceback, with the place: "ValueError: shapes differ (mine.py:12)"."""
    said = " ".join("".join(traceback.format_exception_only(type(error), error)).split())
    elsewhere = (os.path.dirname(__file__) + os.sep, f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not any(part in frame.filename for part in elsewhere)]
    place = f" ({os.path.basename(own[-1].filename)}:{own[-1].lineno})" if own else ""
    return said[: WORDS_BYTES - len(place)] + place


def problem_of(asked: dict) -> Problem:
    B, H, Hkv, Tq, Tk, D, Dv = asked["sizes"]
    left, right, offset = asked["band"]
    tensors = {name: said for name, said in asked["tensors"].items() if name}
    return Problem(
        function=FUNCTIONS[asked["function"]],
        batch=B,
        query_heads=H,
        kv_heads=Hkv,
        query_length=Tq,
        key_length=Tk,
        head_dim=D,
        value_dim=Dv,
        scale=asked["numbers"][0],
        softcap=asked["numbers"][1],
        epsilon=asked["numbers"][2],
        left=_limit(left),
        right=_limit(right),
        offset=offset,
        offsets=asked["offsets"],
        key_lengths=asked["key_lengths"],
        types={name: TYPE_CODES[said[0]] for name, said in tensors.items()},
        strides={name: tuple(said[1:4]) for name, said in tensors.items()},
    )


class Watch:
    """Ends a function when the process that waits for it is gone: the program gives no run more than its time."""

    def __init__(self, abandon: Callable[[], None], complain: Callable[[str], None]) -> None:
        self._abandon, self._complain = abandon, complain
        self._state = threading.Condition()
        self._pid = self._run = 0
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="attnbench-watch", daemon=True)
        self._thread.start()

    def begin(self, pid: int) -> None:
        with self._state:
            self._pid = pid
            self._run += 1
            self._state.notify()

    def end(self) -> None:
        with self._state:
            self._pid = 0
            self._state.notify()

    def close(self) -> None:
        with self._state:
            self._closed = True
            self._state.notify()
        self._thread.join()

    def _loop(self) -> None:
        with self._state:
            while not self._closed:
                if not self._pid:
                    self._state.wait()
                    continue
                run = self._run
                self._state.wait(0.1)
                if self._run == run and self._pid and not is_alive(self._pid):
                    self._abandon()
                    self._state.wait_for(lambda: self._closed or not self._pid or self._run != run, PATIENCE_SECONDS)
                    if self._pid and self._run == run:
                        self._complain("the function does not end and cannot be interrupted, for it is in native code: this goes on when it ends")
                        self._state.wait_for(lambda: self._closed or not self._pid or self._run != run)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Server:
    def __init__(self, functions: list[Variant], quiet: bool) -> None:
        self.functions, self.quiet = functions, quiet
        self.said, self.complained = [], []  # what the program wrote, line by line
        self._names = {function.name for function in functions}
        self._in_function = self._abandoned = False
        self._interrupts = 0
        self._child: subprocess.Popen | None = None
        self._thread = threading.get_ident()
        self._is_main = threading.current_thread() is threading.main_thread()

    # ---- interruptions ----

    def _abandon(self) -> None:
        """From the watching thread."""
        self._abandoned = True
        if self._is_main:
            signal.pthread_kill(self._thread, signal.SIGINT)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(Abandoned))

    def _interrupted(self, *_: object) -> None:
        if self._abandoned:
            if self._in_function:
                raise Abandoned
            return
        self._interrupts += 1
        if self._interrupts > 1:
            raise KeyboardInterrupt
        if self._child:  # which keeps what was measured
            self._child.send_signal(signal.SIGINT)

    def _complain(self, words: str) -> None:
        print(f"attnbench: {words}", file=sys.stderr, flush=True)

    @property
    def interrupted(self) -> bool:
        return self._interrupts > 0

    # ---- answers ----

    def _run(self, asked: dict) -> tuple[float, str]:
        function = self.functions[asked["variant"]]
        problem = problem_of(asked)
        arrays = {name: view(problem, name, self._memory, asked["tensors"][name][4]) for name in problem.types}
        self._abandoned = False
        self._watch.begin(asked["pid"])
        try:
            self._in_function = True
            seconds = function.solve(problem, arrays, asked["threads"])
            self._in_function = False
            if "mask" in arrays:
                self._see_writes(problem, arrays["mask"], asked["tensors"]["mask"][4])
            return seconds, ""
        except Abandoned:
            return 0.0, "was interrupted"
        except KeyboardInterrupt:
            if self._interrupts > 1:
                raise
            return 0.0, "KeyboardInterrupt"
        except BaseException as error:  # SystemExit too is the function's
            return 0.0, last_line(error)
        finally:
            self._in_function = False
            self._watch.end()

    def _see_writes(self, problem: Problem, copy: np.ndarray, at: int) -> None:
        """A mask is a copy: where the function wrote into it the program's is changed too, which sees to its inputs."""
        if not np.array_equal(copy, view(problem, "mask", self._memory, at)):
            self._memory[at] ^= 1

    def _takes(self, asked: dict) -> tuple[float, str]:
        function = self.functions[asked["variant"]]
        try:
            return 0.0, refused(function.accepts, problem_of(asked)) or ""
        except Exception as error:
            return 0.0, f"accepts raises {last_line(error)}"

    def _answer(self, end: socket.socket) -> None:
        message = end.recv(MESSAGE_BYTES)
        if not message:
            return
        asked = json.loads(message)
        if asked["ask"] == "run":
            seconds, words = self._run(asked)
        elif asked["ask"] == "takes":
            seconds, words = self._takes(asked)
        else:
            seconds, words = 0.0, "functions of Python"
        words = " ".join(words.split())
        try:
            end.send(f"{asked['pid']} {asked['id']} {seconds:.9e} {words}".encode())
        except OSError:
            pass  # the program is gone

    # ---- the program ----

    def _in_python(self, line: str) -> str:
        """The command that repeats a failure, as it is typed here."""
        found = re.search(r"attnbench verify --variant (\S+) .*", line)
        if not found or found.group(1) not in self._names:
            return line
        words = shlex.split(found.group(0))[2:]
        named = dict(zip(words[::2], words[1::2]))
        arguments = [found.group(1), f"problem={named['--problem']!r}"] if "--problem" in named else [found.group(1)]
        if "--threads" in named:
            arguments.append(f"threads={named['--threads']}")
        if "--run-limit" in named:
            arguments.append(f"run_limit={named['--run-limit']}")
        return line[: found.start()] + f"attnbench.verify({', '.join(arguments)})" + ("\n" if line.endswith("\n") else "")

    def _pass_on(self, pipe: Any, kept: list[str], to: TextIO, rest: dict) -> bool:
        """What is there; False at its end."""
        piece = os.read(pipe.fileno(), 1 << 16)
        text = rest.get(pipe, b"") + piece
        *lines, rest[pipe] = text.split(b"\n")
        if not piece and rest[pipe]:
            lines.append(rest[pipe])
        for line in lines:
            kept.append(self._in_python(line.decode(errors="replace") + "\n"))
            if not self.quiet:
                to.write(kept[-1])
        if lines and not self.quiet:
            to.flush()
        return bool(piece)

    def _serve(self, end: socket.socket) -> None:
        assert self._child
        rest: dict = {}
        with selectors.DefaultSelector() as waiting:
            waiting.register(end, selectors.EVENT_READ)
            waiting.register(self._child.stdout, selectors.EVENT_READ, (self.said, sys.stdout))
            waiting.register(self._child.stderr, selectors.EVENT_READ, (self.complained, sys.stderr))
            while len(waiting.get_map()) > 1:
                for key, _ in waiting.select():
                    if key.fileobj is end:
                        self._answer(end)
                    elif not self._pass_on(key.fileobj, *key.data, rest):
                        waiting.unregister(key.fileobj)

    def command(self, words: list[str]) -> int:
        """Runs a command of the program to its end; its status."""
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        memory = os.memfd_create("attnbench")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        known = [function.flops_per_second for function in self.functions if function.flops_per_second > 0]
        before = None
        self._watch = Watch(self._abandon, self._complain)
        try:
            os.ftruncate(memory, size)  # pages come with what is written
            self._memory = mmap.mmap(memory, size)
            head = f"{theirs.fileno()} {memory} {size} {min(known, default=0)}"
            told = "\n".join([head, *map(line_of, self.functions)])
            if self._is_main:
                before = signal.signal(signal.SIGINT, self._interrupted)
            self._child = subprocess.Popen(
                [str(_native.part(_native.PROGRAM)), *words, "--plugin", str(_native.part(_native.BRIDGE))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(), memory),
                env={**os.environ, "ATTNBENCH_PYTHON": told},
                start_new_session=True,  # Ctrl-C reaches it once, from here
            )
            if self._interrupts:  # before there was a child
                self._child.send_signal(signal.SIGINT)
            self._serve(ours)
            return self._child.wait()
        finally:
            if self._child and self._child.poll() is None:
                self._child.kill()
                self._child.wait()
            for pipe in (self._child.stdout, self._child.stderr) if self._child else ():
                pipe.close()
            self._watch.close()
            if self._is_main and before is not None:
                signal.signal(signal.SIGINT, before)
            ours.close()
            theirs.close()
            os.close(memory)
            # Not closed: it goes with the last array in it, and a function may have kept one.
            if hasattr(self, "_memory"):
                del self._memory
