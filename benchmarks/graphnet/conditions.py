"""What figures of a graph depend on beside the graph."""

import hashlib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneloom.app.farm.surveying import cpu_name

_HERE = Path(__file__).parent
_MEASURING = ("measuring.py", "samples.py", "scores.py")
_ALIKE_ON_CPUS = ("6baa02431985", "18980f66f4f7", "d61d55a7d5ef", "f6bdb2317b7e")
"""Earlier digests of programs that measured graphs of more than a millisecond on CPUs as these do.

The first failed on some that these measure; on GPUs, the first two left out `reduce-overhead`. The first
three timed single calls of short graphs, always in the same order; in the fourth, each side followed the
same other.
"""
_SHORT_S = 1.5e-3
_COMMIT = "commit"


def of(options: Any) -> dict[str, Any]:
    """The conditions of a run with these options, here and now."""
    asked = {name: getattr(options, name) for name in ("device", "dtype", "trials", "seconds", "cores_each")}
    return {**asked, "cpu": cpu_name(), "method": method(), _COMMIT: _commit()}


def agree(row: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    """Whether a row was measured under these conditions, at whichever commit."""
    long = row.get("eager", {}).get("seconds", 1.0) > _SHORT_S
    as_now = long and row.get("device") == "cpu" and row.get("method") in _ALIKE_ON_CPUS
    alike = {**row, "method": conditions["method"]} if as_now else row
    return all(name in row and alike[name] == value for name, value in conditions.items() if name != _COMMIT)


def method() -> str:
    """A digest of the programs that draw weights, and time and compare calls."""
    texts = (one.read_bytes() for one in (_HERE / name for name in _MEASURING))
    return hashlib.sha256(b"".join(texts)).hexdigest()[:12]


def _commit() -> str:
    if told := os.environ.get("COMMIT"):  # where there is no repository
        return told
    words = ["git", "-C", str(_HERE), "describe", "--always", "--dirty"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
