"""Prints the pinned packages that this Python lacks, "name==version" each, or nothing."""

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def is_there(pin: str) -> bool:
    name, _, wanted = pin.partition("==")
    try:
        # A local part, as in 2.15.0+cpu, names a build of the same version.
        return version(name).split("+")[0] == wanted
    except PackageNotFoundError:
        return False


lines = Path(sys.argv[1]).read_text().splitlines()
pins = [line.strip() for line in lines if "==" in line and not line.startswith("#")]
print(*(pin for pin in pins if not is_there(pin)))
