"""`make peers`, which stands on this package, with peers that are not there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from attnbench import _native

SCRIPT = Path(__file__).parents[3] / "scripts" / "peers" / "peers.py"
SMALL = ("--lengths", "16", "--head-dims", "16", "--masks", "full", "--threads", "1", "--seconds", "1", "--peers", "torch")


def started(out: Path, *more: str, path: Path | None = None) -> subprocess.Popen:
    build = _native.path.parent
    environment = {**os.environ, "ATTNBENCH_HOME": str(build), "PYTHONPATH": os.pathsep.join(map(str, [path] if path else []))}
    return subprocess.Popen(
        [sys.executable, "-B", str(SCRIPT), "--build", str(build), *SMALL, "--out", str(out), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    "more, words",
    [
        (("--variant", "nosuch"), "has no variant 'nosuch'"),
        (("--variant", "linear"), "make peers: linear: computes linear attention"),
        (("--plugin", "/nowhere.so"), "make peers: cannot load plugin /nowhere.so"),
    ],
)
def test_what_takes_nothing_is_told_before_a_peer_is_measured(tmp_path: Path, more: tuple, words: str) -> None:
    run = started(tmp_path / "out", *more)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 2 and said.startswith("make peers: ") and words in said and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    run = started(tmp_path / "file" / "out")
    table, said = run.communicate(timeout=60)
    assert run.returncode == 2 and said.startswith("make peers: ") and "Not a directory" in said and not table


def test_ctrl_c_ends_a_peer_that_is_still_starting(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(f"import time; open({str(tmp_path / 'began')!r}, 'w'); time.sleep(300)\n")
    run = started(tmp_path / "out", path=tmp_path)
    end = time.monotonic() + 60
    while not (tmp_path / "began").exists() and time.monotonic() < end:
        time.sleep(0.02)
    os.killpg(run.pid, signal.SIGINT)
    try:
        run.communicate(timeout=60)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == 130 and not (tmp_path / "out").exists()
