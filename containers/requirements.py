"""Prints the requirements of pyproject.toml with those of some extras, to lock what an image installs.

python requirements.py [EXTRA…]      what Tuneloom needs
python requirements.py --board       what a board needs: TVM's runtime
"""

import sys
import tomllib
from pathlib import Path

_PROJECT = Path(__file__).parents[1] / "pyproject.toml"
BOARD = ("apache-tvm", "apache-tvm-ffi", "ml_dtypes", "numpy", "psutil", "cloudpickle", "tornado")


def requirements(project: dict, extras: list[str]) -> list[str]:
    """All requirements of a project with these extras."""
    return [*project["dependencies"], *(r for e in extras for r in project["optional-dependencies"][e])]


def for_board(project: dict) -> list[str]:
    """Those that a board needs, in the same versions."""
    return [r for r in project["dependencies"] if r.partition("==")[0].partition(">=")[0] in BOARD]


if __name__ == "__main__":
    told = tomllib.loads(_PROJECT.read_text())["project"]
    words = sys.argv[1:]
    print("\n".join(for_board(told) if words == ["--board"] else requirements(told, words)))
