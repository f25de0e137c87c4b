"""Runs a bundle once on files."""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tuneloom.tuners.tvm.runner.model import Model
from tuneloom.tuners.tvm.runner.refused import Refused


def main() -> int:
    """Run the model once on files."""
    parser = argparse.ArgumentParser(description="Run this bundle once on NumPy files.")
    parser.add_argument("--input", nargs="+", required=True, metavar="X.npy", help="one for each input")
    parser.add_argument("--output", nargs="+", required=True, metavar="Y.npy", help="one for each output")
    options = parser.parse_args()
    try:
        outputs = Model(Path(__file__).parent).run([array_in(path) for path in options.input])
        if len(outputs) != len(options.output):
            raise Refused(f"the model gives {len(outputs)} outputs; name as many with --output")
        for path, value in zip(options.output, outputs, strict=True):
            # NumPy's files have no bfloat16.
            np.save(path, value.astype(np.float32) if value.dtype.name == "bfloat16" else value)
    except (Refused, OSError, ValueError) as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    return 0


def array_in(path: str) -> Any:
    """The array of a NumPy file; nothing that such a file could execute is."""
    try:
        with Path(path).open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise Refused(f"{path} can't be read as a NumPy array: {error}; write it with numpy.save") from error
