"""`make test-python`: real kernels (kernels.py) on the problems that they take, held to the reference. Prints for each and each type how
many were run and passed, and the worst share of the bound; status 1 where one fails that docs/findings.md does not name."""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import attnbench
from kernels import KNOWN, LIBRARIES


def numbers(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1")
    return int(text)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make test-python", usage='make test-python [ARGS="options"]', allow_abbrev=False)
    parser.add_argument("--count", type=numbers, default=60, metavar="N", help="problems of each type (60)")
    parser.add_argument("--seed", type=numbers, default=1, metavar="N", help="of the problems (1)")
    parser.add_argument("--libraries", default=",".join(LIBRARIES), metavar="NAME,...", help=f"of {', '.join(LIBRARIES)} (all)")
    parser.add_argument("--verify", type=numbers, metavar="N", help="run the program's verification too, N problems a feature")
    found = parser.parse_args()
    found.libraries = found.libraries.split(",")
    for name in found.libraries:
        if name not in LIBRARIES:
            parser.error(f"'{name}' is not one of {', '.join(LIBRARIES)}")
    return found


def kernels(names: list[str]) -> Iterator[tuple[str, str, Any]]:
    for name in names:
        try:
            version, made = LIBRARIES[name]()
        except ImportError as error:
            print(f"{name} is left out: {error}")
            continue
        for kernel in made:
            yield name, version, kernel


def finding(kernel: Any, line: str) -> str | None:
    """That explains why a kernel is wrong on a problem."""
    return next((name for whose, words, name in KNOWN if whose == kernel.name and re.search(words, line)), None)


def hold(kernel: Any, kind: str, count: int, seed: int) -> tuple[int, int, float, list[str], list[str]]:
    """Problems run, problems passed, the worst share of the bound among these, what failed, and findings that were met."""
    lines = attnbench.problems(kernel, count=count, dtypes=[kind], seed=seed, most_flops=2e6)
    passed, worst, failures, met = 0, 0.0, [], []
    for line in lines:
        try:
            verdict = attnbench.run(kernel, line, threads=2)
        except Exception as error:  # what a library raises is its answer
            failures.append(f"{line}\n    {type(error).__name__}: {' '.join(str(error).split())[:200]}")
            continue
        if verdict:
            passed += 1
            worst = max(worst, verdict.worst_share)
        elif finding(kernel, line):
            met.append(f"{finding(kernel, line)} ({verdict.worst_share:.3g} of the bound)")
        else:
            failures.append("\n    ".join(str(verdict).splitlines()))
    return len(lines), passed, worst, failures, met


def main() -> int:
    asked = options()
    warnings.simplefilter("ignore")
    failed = 0
    print(f"{'library':<14} {'version':<14} {'kernel':<16} {'type':<4} {'run':>5} {'passed':>6} {'known':>5}  worst share passed")
    for library, version, kernel in kernels(asked.libraries):
        told = []
        for kind in kernel.dtypes:
            run, passed, worst, failures, met = hold(kernel, kind, asked.count, asked.seed)
            print(f"{library:<14} {version:<14} {kernel.name:<16} {kind:<4} {run:>5} {passed:>6} {len(met):>5}  {worst:.2f}", flush=True)
            told += failures
            for name in sorted({text.split()[0] for text in met}):
                print(f"  docs/findings.md: {name}, {sum(text.startswith(name) for text in met)} times")
        for failure in told[:5]:
            print(f"  {failure}")
        if len(told) > 5:
            print(f"  and {len(told) - 5} more")
        failed += len(told)
        if asked.verify:
            failed += not attnbench.verify(kernel, count=asked.verify)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
