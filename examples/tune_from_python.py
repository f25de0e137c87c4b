"""Tune a network of the zoo from Python, save it, load it again and run it.

python examples/tune_from_python.py [MODEL] [TRIALS] [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np

from tuneloom import Session
from tuneloom.tuners.tvm.bundles.loading import read_manifest


def main(model: str = "zoo:squeezenet", trials: str = "600", folder: str = "from-python") -> None:
    session = Session(target="cpu")
    session.from_model(model).autotune(trials=int(trials)).build().save(folder)
    before, after = session.result["latency_before_s"], session.result["latency_after_s"]
    print(f"{before * 1e3:.2f} ms before, {after * 1e3:.2f} ms after; run {session.run_id}")
    again = Session.load(folder)
    shapes = [info["shape"] for info in read_manifest(Path(folder))["inputs"]]
    output = again.run(*(np.zeros(shape, dtype="float32") for shape in shapes))
    print("output of zeros:", getattr(output, "shape", output))


if __name__ == "__main__":
    main(*sys.argv[1:])
