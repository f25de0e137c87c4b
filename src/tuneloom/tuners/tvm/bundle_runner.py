"""Runs the bundle this file lies in. Needs TVM's runtime and NumPy, nothing else.

python run.py output.npy input.npy...
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np


def load(folder: Path) -> tuple[Any, list[Any], dict[str, Any]]:
    """The model's function, its parameters, and the manifest."""
    import tvm
    from tvm import relax

    manifest = json.loads((folder / "bundle.json").read_text())
    device = tvm.device(manifest["target"]["device"])
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(folder / "model.so")), device)
    with np.load(folder / "parameters.npz") as stored:
        parameters = [tvm.runtime.tensor(stored[name], device) for name in sorted(stored.files)]
    return machine["main"], parameters, manifest


def main() -> None:
    """Run the model once on the inputs given."""
    import tvm

    function, parameters, manifest = load(Path(__file__).parent)
    device = tvm.device(manifest["target"]["device"])
    values = [
        tvm.runtime.tensor(np.load(path).astype(info["dtype"]), device)
        for path, info in zip(sys.argv[2:], manifest["inputs"], strict=True)
    ]
    result = function(*values, *parameters)
    first = result if len(manifest["outputs"]) == 1 else result[0]
    np.save(sys.argv[1], first.numpy())


if __name__ == "__main__":
    main()
