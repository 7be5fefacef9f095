"""libattnbench.so and the program beside it: where they lie, and what bindings/python/native/library.h declares."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path

LIBRARY, PROGRAM, BRIDGE = "libattnbench.so", "attnbench", "attnbench_python.so"
VERSION = 1  # of library.h


class Array(ctypes.Structure):
    _fields_ = [("tensor", c_char_p), ("data", c_void_p), ("type", c_char_p), ("strides", c_int64 * 4)]


def _places() -> list[Path]:
    """Folders that may hold the library, the best first."""
    named = os.environ.get("ATTNBENCH_HOME")
    if named:
        home = Path(named).expanduser()
        return [home, home / "build", home / "lib" / "attnbench"]
    package = Path(__file__).resolve().parent
    places = [package / "native", package.parents[2] / "build"]
    program = shutil.which(PROGRAM)
    if program:
        places.append(Path(program).resolve().parent.parent / "lib" / "attnbench")
    return places + [Path(prefix) / "lib" / "attnbench" for prefix in (sys.prefix, "/usr/local", "/usr")]


def _find(name: str, folders: list[Path]) -> Path:
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise ImportError(
        f"{name} is not found: run `make` in a checkout of attnbench and set ATTNBENCH_HOME to it, or install it with "
        f"`make install`; looked in {', '.join(map(str, folders))}"
    )


def _load() -> tuple[Path, ctypes.CDLL]:
    path = _find(LIBRARY, _places())
    library = ctypes.CDLL(str(path))
    why = (c_char_p, c_size_t)
    signatures = {
        "attnbench_library_version": (c_int, ()),
        "attnbench_version": (c_char_p, ()),
        "attnbench_describe": (c_void_p, (c_char_p, c_uint64, *why)),
        "attnbench_draw": (c_bool, (c_char_p, c_char_p, c_void_p, c_size_t, *why)),
        "attnbench_sees": (c_bool, (c_char_p, c_void_p, c_size_t, *why)),
        "attnbench_problem": (c_void_p, (c_uint64, c_int64)),
        "attnbench_judge": (c_void_p, (c_char_p, POINTER(Array), c_size_t, c_bool, POINTER(c_void_p), *why)),
        "attnbench_free": (None, (c_void_p,)),
        "attnbench_ready": (c_void_p, (c_char_p, c_char_p, c_char_p, c_int, c_int, *why)),
        "attnbench_repeat": (c_double, (c_void_p, c_int64)),
        "attnbench_output": (c_void_p, (c_void_p,)),
        "attnbench_written": (c_void_p, (c_void_p, c_char_p)),
        "attnbench_release": (None, (c_void_p,)),
        "attnbench_median": (None, (POINTER(c_double), c_size_t, POINTER(c_double))),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    if library.attnbench_library_version() != VERSION:
        raise ImportError(f"{path} is of another version than this package: build it again with `make`")
    return path, library


path, library = _load()


def part(name: str) -> Path:
    """The program or the bridge, which lie beside the library, or where `make install` puts them."""
    return _find(name, [path.parent, path.parent.parent.parent / "bin"])


def _text(pointer: int) -> str:
    try:
        return ctypes.string_at(pointer).decode(errors="replace")
    finally:
        library.attnbench_free(pointer)


def _ask(name: str, *arguments: object) -> int:
    """Calls a function that gives a reason where it returns false or NULL."""
    why = ctypes.create_string_buffer(2048)
    answer = getattr(library, name)(*arguments, why, len(why))
    if not answer:
        raise ValueError(why.value.decode(errors="replace"))
    return answer


def describe(line: str, seed: int) -> dict:
    if not isinstance(line, str):
        raise ValueError(f"a problem is a line such as 'causal/B:2/H:8/D:64/T:1000', not {type(line).__name__}")
    if "\0" in line:
        raise ValueError("a problem is one line of text, and this one has a NUL in it")
    if not isinstance(seed, int) or not 0 <= seed < 1 << 64:
        raise ValueError(f"a seed is a whole number from 0 below 2^64, not {seed!r}")
    return json.loads(_text(_ask("attnbench_describe", line.encode(), seed)))


def draw(line: str, tensor: str, address: int, size: int) -> None:
    _ask("attnbench_draw", line.encode(), tensor.encode(), address, size)


def sees(line: str, address: int, size: int) -> None:
    _ask("attnbench_sees", line.encode(), address, size)


def problem(seed: int, number: int) -> str:
    return _text(library.attnbench_problem(seed, number))


def ready(line: str, plugin: str, variant: str, device: int, threads: int) -> int:
    return _ask("attnbench_ready", line.encode(), plugin.encode(), variant.encode(), device, threads)


def judge(line: str, arrays: list[Array], hint: bool) -> tuple[dict, str]:
    """The verdict and its words."""
    words = c_void_p()
    given = (Array * len(arrays))(*arrays)
    said = _ask("attnbench_judge", line.encode(), given, len(arrays), hint, ctypes.byref(words))
    return json.loads(_text(said)), _text(words.value)
