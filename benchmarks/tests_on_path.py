"""Imported for what it does: this process, and those it starts, find the package `support` of our tests."""

import os
import sys
from pathlib import Path

TESTS = str(Path(__file__).parents[1] / "tests")
sys.path.insert(1, TESTS)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (TESTS, os.environ.get("PYTHONPATH"))))
