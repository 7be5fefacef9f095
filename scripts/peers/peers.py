"""Measures a variant of this suite beside what a user would pick instead: `make peers`.

Every point is one problem with so many threads. All implementations get the same inputs, their outputs
are held to the suite's reference under its bound, and they are timed in turns, in random order within
each repetition. The time of each repetition is divided by ours of the same repetition, so that what slows
the machine for a while slows both sides of a ratio.
"""

from __future__ import annotations

import itertools
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from implementations import PEERS, Inputs, Ours
from options import ROOT, TITLES, TYPES, Options, parse
from results import Measurement, Point, Run, header, plot, row, summary, write
from shapes import Shape, attnbench, median
from worker import Worker, WorkerError

TURN_SECONDS = 0.02  # of one implementation in one repetition, at least one call


def measure_peaks(options: Options, threads: int) -> dict[str, float]:
    """The multiply-add peak of the fastest instruction set, or of the device, in FLOP/s, by type; empty where it cannot be
    had. What no instruction multiplies is converted, and its peak that of float32."""
    program = options.build / "attnbench"
    where = ["--device", options.device] if options.device else ["--threads", str(threads)]
    try:
        done = subprocess.run([program, "machine", *where], capture_output=True, text=True)
    except OSError:
        return {}
    peaks = {}
    line = re.compile(r"^ +(\w+) +([0-9.]+) GFLOP/s", re.MULTILINE)
    for name, rate in line.findall(done.stdout):
        if name in TYPES:
            peaks[name] = float(rate) * 1e9
        elif name.endswith(("_bf16", "_amx")):
            peaks["bf16"] = float(rate) * 1e9
        elif name.endswith("_f16"):
            peaks["f16"] = float(rate) * 1e9
        elif name in ("portable", "avx2", "avx512", "neon"):
            peaks |= {kind: float(rate) * 1e9 for kind in TYPES}
    return peaks


def shapes_of(options: Options) -> list[Shape]:
    corners = itertools.product(options.types, options.masks, options.head_dims, options.lengths)
    return [
        Shape(
            mask,
            options.batch,
            options.heads,
            dim,
            length,
            options.seed,
            kind,
            options.kv_heads,
            options.query_length,
            options.backward,
        )
        for kind, mask, dim, length in corners
    ]


def check_ours(worker: Worker, shapes: list[Shape]) -> None:
    """WorkerError where ours takes none of them: then there is nothing to divide by."""
    for shape in sorted(shapes, key=lambda one: one.length):
        try:
            worker.prepare(inputs_of(shape))
            return
        except WorkerError as error:
            refusal = error
    raise refusal


def start_workers(options: Options, threads: int, run: Run, workers: list[Worker]) -> None:
    """Ours first. A peer that does not start is said to, and left out."""
    number = int(options.device.partition(":")[2]) if options.device else 0
    workers.append(Worker(options.variant, threads, Ours, options.plugin.resolve(), options.variant, number))
    check_ours(workers[0], shapes_of(options))
    where = (options.device,) if options.device else ()
    for name in options.peers:
        try:
            workers.append(Worker(name, threads, PEERS[name], *where))
        except WorkerError as error:
            print(f"{TITLES[name]} does not start: {error}", file=sys.stderr)
    run.versions |= {worker.name: worker.version for worker in workers}


def inputs_of(shape: Shape) -> Inputs:
    others = ("docs_q", "docs_k", "blocks", "output_grad")
    drawn = attnbench.inputs(shape.line(), names=("q", "k", "v", *others))
    tensors = (drawn[name].view(shape.array_type()) for name in ("q", "k", "v"))
    return Inputs(shape, *tensors, {name: drawn[name] for name in others if name in drawn})


def prepare(worker: Worker, case: Shape, timed: Shape, measurement: Measurement) -> bool:
    """Holds the output to the reference, then makes the point ready with other inputs, so that an answer that was
    remembered would be wrong; true when it can be timed."""
    try:
        ready = worker.prepare(inputs_of(case))
        measurement.kernel = ready.kernel
        measurement.note(case.hold(ready.output))
        worker.prepare(inputs_of(timed), ready.kernel)
    except WorkerError as error:
        measurement.failure = str(error)
        return False
    return True


def hold_timed(worker: Worker, timed: Shape, measurement: Measurement) -> None:
    """Holds what the last timed call wrote to the reference."""
    try:
        held = timed.hold(worker.output())
    except WorkerError as error:
        measurement.failure = measurement.failure or f"wrong while it is timed: {error}"
        return
    if held.problem and not measurement.failure:
        measurement.note(held, "wrong while it is timed: ")


def measure(options: Options, workers: list[Worker], shape: Shape, threads: int) -> Point:
    other = replace(shape, seed=shape.seed + 1)
    by_name = {name: Measurement(name) for name in [options.variant, *options.peers]}
    there = {worker.name: worker for worker in workers}
    for name, found in by_name.items():
        if name not in there:
            found.failure = "does not start"
    timed = [worker for worker in workers if prepare(worker, shape, other, by_name[worker.name])]
    order = random.Random(f"{options.seed} {shape.workload()} {threads}")
    repetitions, end = 0, time.monotonic() + options.seconds
    while timed and (repetitions < options.repetitions or time.monotonic() < end):
        order.shuffle(timed)
        for worker in list(timed):
            try:
                by_name[worker.name].seconds.append(worker.measure(TURN_SECONDS))
            except WorkerError as error:
                by_name[worker.name].failure = str(error)
                timed.remove(worker)
        repetitions += 1
    for worker in timed:
        hold_timed(worker, other, by_name[worker.name])
    point = Point(shape, threads, attnbench.parse(shape.line()).flops, list(by_name.values()))
    for found in point.measurements:
        complete = 0 < len(found.seconds) == repetitions
        found.time = median(found.seconds) if complete else None
        if complete and point.ours().time:
            ratios = [theirs / mine for theirs, mine in zip(found.seconds, point.ours().seconds)]
            found.ratio = median(ratios)
    return point


def measure_all(options: Options, run: Run, say: Callable[[str], None]) -> None:
    say(f"{options.variant} against its peers: their time over ours, above 1 where ours is less;")
    say("median [95% interval] of paired repetitions; '!': an output that our checks fail, as told below.")
    decoding = f", Tq {options.query_length}: T is that of the keys" if options.query_length else ""
    say(f"B {options.batch}, H {options.heads}, Hkv {options.kv_heads}{decoding}. Percent: of the multiply-add peak of this run.\n")
    say(header(run))
    for threads in options.threads:
        workers: list[Worker] = []
        try:
            start_workers(options, threads, run, workers)
            run.peaks |= {(threads, kind): peak for kind, peak in measure_peaks(options, threads).items()}
            for shape in shapes_of(options):
                run.points.append(measure(options, workers, shape, threads))
                say(row(run, run.points[-1]))
        finally:
            for worker in workers:
                worker.end()


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    table: list[str] = []

    def say(text: str) -> None:
        table.append(text)
        print(text, flush=True)

    run = Run(options.variant, str(options.plugin), options.peers, {}, {})
    interrupted = False
    try:
        options.out.mkdir(parents=True)  # before minutes of measuring
        measure_all(options, run, say)
    except (OSError, ValueError, WorkerError) as error:
        print(f"make peers: {error}", file=sys.stderr)
        if options.out.is_dir():
            options.out.rmdir()
        return 2
    except KeyboardInterrupt:  # what is measured is kept
        interrupted = True
    if not run.points:
        options.out.rmdir()
        return 130
    say("")
    for line in summary(run):
        say(line)
    write(run, options.out, options.seed, "\n".join(table) + "\n")
    why = plot(run, ROOT / "scripts" / "plots", options.out)
    if why:
        print(f"no plot: {why}", file=sys.stderr)
    print(f"\n{options.out} holds the table{' and' if why else ','} results.json{'' if why else ' and the plot'}")
    if interrupted:
        return 130
    return 1 if any(point.ours().failure for point in run.points) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
