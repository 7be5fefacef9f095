"""The package of this checkout, unless another one is installed."""

import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
if importlib.util.find_spec("attnbench") is None:
    sys.path.insert(0, str(HERE.parent))
