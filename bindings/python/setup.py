"""Builds the program and its library with make in the checkout that this folder lies in, and takes them into the package, so that
what is installed needs nothing of the checkout. With ATTNBENCH_HOME, a build or an installation of one's own, nothing is built: it
is looked for there at run time."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PARTS = ("attnbench", "attnbench_variants.so", "attnbench_python.so", "libattnbench.so")


def version() -> str:
    header = (ROOT / "harness" / "base" / "version.h").read_text()
    return re.search(r'#define ATTNBENCH_VERSION "(.*)"', header).group(1)


class Build(build_py):
    def run(self) -> None:
        super().run()
        if os.environ.get("ATTNBENCH_HOME"):
            return
        native = Path(self.build_lib) / "attnbench" / "native"
        made = ["make", "-C", str(ROOT), f"-j{os.cpu_count() or 1}", *(f"build/{part}" for part in PARTS)]
        try:
            subprocess.run(made, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"attnbench: `{' '.join(made)}` failed ({error}): it takes gcc, make and libjansson-dev")
        native.mkdir(parents=True, exist_ok=True)
        for part in PARTS:
            shutil.copy2(ROOT / "build" / part, native / part)
        shutil.copytree(ROOT / "scripts" / "plots", native / "plots", dirs_exist_ok=True)


class Native(Distribution):
    def has_ext_modules(self) -> bool:  # so that the wheel is one of this platform
        return True


setup(version=version(), cmdclass={"build_py": Build}, distclass=Native)
