"""verify, fuzz and bench: the program's commands on functions of Python, with the same text and JSON."""

from __future__ import annotations

import json
import re
import shutil
import signal
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ._server import Server
from ._variant import Variant


class Result:
    """What came of a command: true where its status is 0."""

    def __init__(self, status: int, text: str, log: str, measured: dict | None = None) -> None:
        self.status, self.text, self.log, self.json = status, text, log, measured
        self.interrupted = status == 130 or "interrupted: " in text
        self.failures = [
            line.strip().split("FAILED: ", 1)[1] for line in text.splitlines() if re.match(r"\s*FAILED: ", line)
        ]
        if not self.failures:  # what ended the program's process, or took too long
            self.failures = re.findall(r"^attnbench: (variant '.*' .*)", log, re.MULTILINE)
        self.reproduce = list(dict.fromkeys(re.findall(r"attnbench\.verify\(.*\)", text + log)))

    @property
    def passed(self) -> bool:
        return self.status == 0

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{'passed' if self.passed else 'interrupted' if self.interrupted else 'failed'}: {len(self.failures)} failures>"

    def assert_passed(self) -> None:
        if not self.passed:
            raise AssertionError("\n".join([*self.failures, *self.reproduce]) or self.log or self.text)


# What is so unless it is said not to be; of other options False is what is so.
ON = ("brief", "instructions", "isolate", "benchmark_enable_random_interleaving")


def _option(name: str, value: Any) -> list[str]:
    if value is None or (value is False and name not in ON):
        return []
    flag = f"--{name}" if name.startswith("benchmark_") else f"--{name.replace(chr(95), chr(45))}"
    if isinstance(value, bool):
        return [flag if value else f"{flag}=false"]
    if isinstance(value, (list, tuple)):
        return [f"{flag}={','.join(map(str, value))}"]
    return [f"{flag}={value}"]


MOST_VARIANTS = 16  # of the bridge


def _command(command: str, variants: tuple, against: Iterable[str], quiet: bool, options: dict) -> Result:
    if not variants:
        raise ValueError(f"{command} takes a variant at least: {command}(mine)")
    if len(variants) > MOST_VARIANTS:
        raise ValueError(f"{command} takes {MOST_VARIANTS} variants at most, not {len(variants)}: call it for some at a time")
    for given in variants:
        if not isinstance(given, Variant):
            raise ValueError(f"a variant is what @attnbench.variant made, not {type(given).__name__}")
    if isinstance(against, str):
        raise ValueError(f"against is a list of names, such as ['{against}']")
    names = [given.name for given in variants]
    if len(set(names)) < len(names):
        raise ValueError(f"two variants have the same name: {', '.join(names)}")
    problem = options.pop("problem", None)
    lines = [problem] if isinstance(problem, str) else list(problem or ())
    words = [command, f"--variant={','.join([*names, *against])}"]
    words += [word for line in lines for word in ("--problem", str(line))]
    # `--plugin` names the bridge alone, so that names of the program's variants are free where none is asked for.
    words += [] if against or command == "bench" else ["--own=false"]
    for name, value in options.items():
        words += _option(name, value)
    server = Server(list(variants), quiet)
    status = server.command(words)
    if status == -signal.SIGINT or (status == 2 and server.interrupted):
        raise KeyboardInterrupt
    text, log = "".join(server.said), "".join(server.complained)
    if status == 2:
        reasons = [line for line in log.splitlines() if line.startswith("attnbench: ")]
        raise ValueError((reasons or ["attnbench: it says no more"])[-1][len("attnbench: ") :])
    if status < 0:
        raise RuntimeError(f"the program was ended by {signal.Signals(-status).name}")
    return Result(status, text, log)


def verify(
    *variants: Variant,
    problem: str | Iterable[str] | None = None,
    count: int | None = None,
    every: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    fail_fast: bool = False,
    run_limit: float | None = None,
    against: Iterable[str] = (),
    quiet: bool = False,
) -> Result:
    """Holds functions to the reference over the grid and random problems, or over the given ones: `attnbench verify`."""
    options = {key: value for key, value in locals().items() if key not in ("variants", "against", "quiet")}
    return _command("verify", variants, against, quiet, options)


def fuzz(
    *variants: Variant,
    seconds: float = 60,
    problem: str | None = None,
    seed: int | None = None,
    threads: int | None = None,
    run_limit: float | None = None,
    quiet: bool = False,
) -> Result:
    """Random problems until the time is over or one fails, which is then shrunk: `attnbench fuzz`."""
    options = {key: value for key, value in locals().items() if key not in ("variants", "quiet")}
    return _command("fuzz", variants, (), quiet, options)


def bench(*variants: Variant, against: Iterable[str] = (), quiet: bool = False, out: str | None = None, **options: Any) -> Result:
    """Measures functions, beside the program's own variants where some are named, each point verified first: `attnbench bench`.
    Options are those of the command (lengths="128:1024", heads=8, causal=True, type="bf16", min_time="0.1s"); the result's json is the
    report in Google Benchmark's schema."""
    options = {"instructions": False, **{k.replace("-", "_"): v for k, v in options.items()}}  # valgrind sees no Python
    wanted = options.pop("benchmark_out", None)
    if options.get("benchmark_out_format") not in (None, "json"):
        raise ValueError("benchmark_out_format is json alone here, which the result is read from; out= writes results.csv too")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        result = _command("bench", variants, against, quiet, {**options, "benchmark_out": file, "benchmark_out_format": "json", "out": out})
        if file.is_file():
            result.json = json.loads(file.read_text())
            if wanted is not None:
                shutil.copyfile(file, wanted)
    return result
