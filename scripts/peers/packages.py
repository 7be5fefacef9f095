"""Prints those of the pins "name==version" of the command line that this Python lacks."""

import sys
from importlib.metadata import PackageNotFoundError, version


def is_there(pin: str) -> bool:
    name, _, wanted = pin.partition("==")
    try:
        # A local part, as in 2.15.0+cpu, names a build of the same version.
        return version(name).split("+")[0] == wanted
    except PackageNotFoundError:
        return False


print(*(pin for pin in sys.argv[1:] if not is_there(pin)))
