"""What was measured, as a table, as JSON and as a plot."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import subprocess
import tempfile
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from options import TITLES, TYPES
from shapes import Held, Interval, Shape


@dataclass
class Measurement:
    """One implementation at one point."""

    name: str  # of the variant, or of the peer
    kernel: str = ""
    failure: str = ""  # in words, when there is nothing to show
    bound_share: float = math.nan
    mean_square_share: float = math.nan
    seconds: list[float] = field(default_factory=list)  # of each repetition
    time: Interval | None = None
    ratio: Interval | None = None  # its time over ours, from pairs of repetitions

    def note(self, held: Held, when: str = "") -> None:
        self.bound_share, self.mean_square_share = held.bound_share, held.mean_square_share
        self.failure = f"{when}{held.problem}" if held.problem else ""


@dataclass
class Point:
    """All implementations on one problem with so many threads; ours first."""

    shape: Shape
    threads: int
    flops: float
    measurements: list[Measurement]

    def ours(self) -> Measurement:
        return self.measurements[0]


@dataclass
class Run:
    variant: str
    plugin: str
    peers: list[str]
    versions: dict[str, str]
    peaks: dict[tuple[int, str], float]  # FLOP/s by threads and type; empty where it was not measured
    points: list[Point] = field(default_factory=list)


# ---- table ----


def title(run: Run, name: str) -> str:
    return run.variant if name == run.variant else TITLES[name]


def header(run: Run) -> str:
    columns = "".join(f"  {TITLES[name]:>21}" for name in run.peers)
    problem = f"{'threads':>7}  {'type':<4}  {'mask':<13}  {'D':>3}  {'T':>6}"
    return f"{problem}  {run.variant + ' GFLOP/s':>20}{columns}"


def _ours(run: Run, point: Point) -> str:
    mine = point.ours()
    if mine.time is None:
        return mine.failure or "not measured"
    rate = point.flops / mine.time.estimate
    peak = run.peaks.get((point.threads, point.shape.type))
    return f"{rate * 1e-9:.1f}" + (f" ({100 * rate / peak:.0f}%)" if peak else "")


def _cell(measurement: Measurement) -> str:
    if measurement.ratio is None:
        return "failed" if measurement.failure else "not measured"
    ratio = measurement.ratio
    wrong = " !" if measurement.failure else ""
    return f"{ratio.estimate:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]{wrong}"


def row(run: Run, point: Point) -> str:
    shape = point.shape
    cells = "".join(f"  {_cell(measurement):>21}" for measurement in point.measurements[1:])
    return (
        f"{point.threads:>7}  {shape.type:<4}  {shape.mask:<13}  {shape.head_dim:>3}  {shape.length:>6}  "
        f"{_ours(run, point):>20}{cells}"
    )


def summary(run: Run) -> list[str]:
    """Who is ahead, how accurate each is, which kernels were taken, and what failed."""
    lines = []
    for index, name in enumerate(run.peers, start=1):
        found = [(p, m.ratio.estimate) for p in run.points if (m := p.measurements[index]).ratio]
        if not found:
            continue
        worst, least = min(found, key=lambda pair: pair[1])
        ratios = [ratio for _, ratio in found]
        lines.append(
            f"against {TITLES[name]:<13} median {statistics.median(ratios):.2f}, least {least:.2f} "
            f"({_where(worst)}); ahead at {sum(r > 1 for r in ratios)} of {len(ratios)} points, "
            f"1.3 times or more at {sum(r >= 1.3 for r in ratios)}"
        )
    for index, name in enumerate([run.variant, *run.peers]):
        measured = [p.measurements[index] for p in run.points]
        kernels = sorted({m.kernel for m in measured if m.kernel})
        accuracy = [_accuracy(run, index, kind) for kind in dict.fromkeys(p.shape.type for p in run.points)]
        lines.append(
            f"{title(run, name):<13} {run.versions.get(name, 'not there')}: {', '.join(kernels)}; "
            f"worst error {', '.join(accuracy)}"
        )
    failures: dict[tuple[str, str], list[Point]] = {}
    for point in run.points:
        for found in point.measurements:
            if found.failure:
                failures.setdefault((found.name, found.failure), []).append(point)
    for (name, failure), points in failures.items():
        more = f" and {len(points) - 1} more" if len(points) > 1 else ""
        lines.append(f"{title(run, name)} at {_where(points[0])}{more}: {failure}")
    return lines


def _accuracy(run: Run, index: int, kind: str) -> str:
    """What an implementation shows in this type: one that rounds more than the model is beyond a check, and
    the multiple says by how much."""
    found = [p.measurements[index] for p in run.points if p.shape.type == kind]
    shown = [m for m in found if not math.isnan(m.bound_share)]
    if not shown:
        return f"not known in {kind}"
    bound = max(m.bound_share for m in shown)
    square = max(m.mean_square_share for m in shown)
    more = " (more than the model's roundings)" if 1 < max(bound, square) < math.inf else ""
    return f"{bound:.2g} of its bound and root mean square {square:.2g} of its limit in {kind}{more}"


def _where(point: Point) -> str:
    threads = f"{point.threads} thread{'' if point.threads == 1 else 's'}"
    shape = point.shape
    lengths = f"Tq {shape.queries()}, Tk" if shape.queries() < shape.length else "T"
    return f"{shape.type}, {shape.mask}, D {shape.head_dim}, {lengths} {shape.length}, {threads}"


# ---- files ----


def _whole(path: Path, text: str) -> None:
    beside = path.with_name(path.name + ".new")
    beside.write_text(text)
    beside.rename(path)


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _context(run: Run, seed: int) -> dict[str, Any]:
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "host_name": platform.node(),
        "executable": "scripts/peers/peers.py",
        "num_cpus": os.cpu_count(),
        "cpu": cpu_name(),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load_avg": list(os.getloadavg()),
        "seed": str(seed),
        "variant": run.variant,
        "plugin": run.plugin,
        "versions": run.versions,
        "peaks": [
            {"threads": threads, "type": kind, "median": peak} for (threads, kind), peak in run.peaks.items()
        ],
    }


def _entry(run: Run, point: Point, measurement: Measurement) -> dict[str, Any]:
    name = f"{measurement.name}/{point.shape.workload()}"
    entry: dict[str, Any] = {
        "name": f"{name}/threads:{point.threads}_median",
        "run_name": f"{name}/threads:{point.threads}",
        "run_type": "aggregate",
        "aggregate_name": "median",
        "aggregate_unit": "time",
        "repetitions": len(measurement.seconds),
        "threads": point.threads,
        "kernel": measurement.kernel,
    }
    if not math.isnan(measurement.bound_share) and math.isfinite(measurement.bound_share):
        entry["error_bound_fraction"] = measurement.bound_share
        entry["root_mean_square_fraction"] = measurement.mean_square_share
    if measurement.failure:
        entry["error_occurred"] = True
        entry["error_message"] = measurement.failure
    if measurement.time:
        rate = point.flops / measurement.time.estimate
        entry |= {
            "iterations": len(measurement.seconds),
            "real_time": measurement.time.estimate * 1e9,
            "real_time_low": measurement.time.low * 1e9,
            "real_time_high": measurement.time.high * 1e9,
            "time_unit": "ns",
            "flops": point.flops,
            "flops_per_second": rate,
            "repetition_times": [seconds * 1e9 for seconds in measurement.seconds],
        }
        if peak := run.peaks.get((point.threads, point.shape.type)):
            entry["peak_fraction"] = rate / peak
    if measurement.ratio:
        entry |= {
            "time_over_ours": measurement.ratio.estimate,
            "time_over_ours_low": measurement.ratio.low,
            "time_over_ours_high": measurement.ratio.high,
        }
    return entry


def write(run: Run, folder: Path, seed: int, table: str) -> None:
    entries = [_entry(run, point, m) for point in run.points for m in point.measurements]
    report = {"context": _context(run, seed), "benchmarks": entries}
    _whole(folder / "results.json", json.dumps(report, indent=2, allow_nan=False) + "\n")
    _whole(folder / "console.txt", table)


# ---- plot ----


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _length_title(run: Run) -> str:
    queries = run.points[0].shape.query_length
    return f"key length Tk (tokens), Tq = {queries}" if queries else "sequence length T (tokens)"


def _panel(shape: Shape) -> tuple[str, str, int]:
    return shape.type, shape.mask, shape.head_dim


def _lines(run: Run, panel: tuple[str, str, int]) -> list[tuple[str, int, list[tuple[int, Interval]]]]:
    """(peer, threads, points) of one panel, which is a type, a mask and a head dimension."""
    lines = []
    for index, name in enumerate(run.peers, start=1):
        for threads in sorted({point.threads for point in run.points}):
            found = [
                (point.shape.length, ratio)
                for point in run.points
                if _panel(point.shape) == panel
                and point.threads == threads
                and (ratio := point.measurements[index].ratio)
            ]
            if found:
                lines.append((name, threads, sorted(found, key=lambda pair: pair[0])))
    return lines


def _settings(run: Run, scripts: Path, data: Path) -> str:
    """Writes the data, one block for each line, and gives what peers.gp needs to know of them."""
    panels = sorted(
        {_panel(p.shape) for p in run.points}, key=lambda p: (TYPES.index(p[0]), p[1] != "full", p[2])
    )
    all_threads = sorted({point.threads for point in run.points})
    ratios = [m.ratio for p in run.points for m in p.measurements if m.ratio]
    lengths = sorted({point.shape.length for point in run.points})
    blocks: list[str] = []
    first, titles, style, dash = [0], [], [], []
    for panel in panels:
        for name, threads, points in _lines(run, panel):
            rows = (f"{x} {r.estimate:.9g} {r.low:.9g} {r.high:.9g}" for x, r in points)
            blocks.append("\n".join(rows))
            titles.append(f"{TITLES[name]}, {threads} thread{'' if threads == 1 else 's'}")
            style.append(list(TITLES).index(name) + 2)
            dash.append(all_threads.index(threads) + 1)
        first.append(len(blocks))
    data.write_text("\n\n\n".join(blocks) + "\n")
    shape = run.points[0].shape
    kv_heads = shape.dims("key")[1]

    def array(name: str, values: list[Any]) -> str:
        return f"array {name}[{len(values)}] = [{', '.join(str(value) for value in values)}]"

    return "\n".join(
        [
            f"scripts = {_quoted(str(scripts))}",
            f"data = {_quoted(str(data))}",
            f"title = {_quoted(f'{run.variant} against its peers: their time over ours')}",
            f"machine = {_quoted(f'{cpu_name()}, B {shape.batch}, H {shape.heads}, Hkv {kv_heads}')}",
            f"x_title = {_quoted(_length_title(run))}",
            f"panels = {len(panels)}",
            array("panel_title", [_quoted(f"{kind}, {mask}, D {dim}") for kind, mask, dim in panels]),
            array("first", first),
            array("line_title", [_quoted(text) for text in titles]),
            array("style", style),
            array("dash", dash),
            f"x_low = {lengths[0] / 1.2}\nx_high = {lengths[-1] * 1.2}",
            f"y_low = {min(0.5, min(r.low for r in ratios) / 1.1):.6g}",
            f"y_high = {max(2.0, max(r.high for r in ratios) * 1.1):.6g}",
            "",
        ]
    )


def plot(run: Run, scripts: Path, folder: Path) -> str:
    """Draws ratio.png and ratio.svg; what kept them from being drawn, or ""."""
    if not any(m.ratio for p in run.points for m in p.measurements[1:]):  # behind our own
        return "no peer was measured, so there is nothing to draw"
    with tempfile.TemporaryDirectory(prefix=".plots-", dir=folder) as temporary:
        settings = _settings(run, scripts, Path(temporary) / "data")
        for form in ("png", "svg"):
            drawn = Path(temporary) / f"ratio.{form}"
            own = Path(temporary) / "settings.gp"
            own.write_text(f"{settings}format = '{form}'\noutput = {_quoted(str(drawn))}\n")
            command = ["gnuplot", "-d", str(scripts / "common.gp"), str(own), str(scripts / "peers.gp")]
            try:
                done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            except OSError:
                return "gnuplot was not found; apt-get install gnuplot-nox"
            if done.returncode != 0:
                return f"gnuplot failed: {' '.join(done.stderr.split())[:300]}"
            drawn.rename(folder / drawn.name)
    return ""
