"""What the process that looks into an uploaded file does; it imports what it needs and no more.

It is started for every upload, so what it imports is what a user waits for.
"""

import json
import resource
import sys
import zipfile
from pathlib import Path
from typing import Any

from tuneloom.errors import ModelError

TIMEOUT_S = 60.0
_MOST_TOLD = 64
_EXTRA_BYTES = 2 << 30


def described(path: Path) -> dict[str, Any]:
    """The inputs of a model or of samples, and more; raises ModelError if it can't be used."""
    readers = {".onnx": _onnx, ".npz": _samples}
    return readers.get(path.suffix, _tflite)(path)


def _onnx(path: Path) -> dict[str, Any]:
    import onnx

    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:
        raise ModelError("it is not an ONNX model, or a damaged one") from error
    graph = model.graph
    if not graph.node or not graph.output:
        raise ModelError("it is not an ONNX model, or an empty one")
    if any(weight.data_location == onnx.TensorProto.EXTERNAL for weight in graph.initializer):
        raise ModelError("its weights lie in another file; save the model as one file")
    weights = {weight.name for weight in graph.initializer}
    inputs = [each for each in graph.input if each.name not in weights][:_MOST_TOLD]
    return {
        "format": "onnx",
        "inputs": {each.name[:200]: _sizes(each.type.tensor_type) for each in inputs},
        "nodes": len(graph.node),
        "opset": max((each.version for each in model.opset_import if not each.domain), default=0),
    }


def _sizes(tensor: Any) -> list[int | str]:
    return [each.dim_value or each.dim_param[:100] or "?" for each in tensor.shape.dim][:16]


def _tflite(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        if file.read(8)[4:] != b"TFL3":
            raise ModelError("it is not a TensorFlow Lite model")
    return {"format": "tflite"}


def _samples(path: Path) -> dict[str, Any]:
    import numpy as np

    try:
        if not zipfile.is_zipfile(path):  # NumPy would take it for a pickle
            raise ValueError
        with np.load(path, allow_pickle=False) as stored:
            shapes = {name[:200]: list(stored[name].shape) for name in stored.files[:_MOST_TOLD]}
    except Exception as error:
        raise ModelError("it is not a NumPy archive, or a damaged one") from error
    return {"format": "npz", "inputs": shapes}


def main(path: Path) -> None:
    """What the other process does: bound itself, look, print."""
    bound = _EXTRA_BYTES + 3 * path.stat().st_size
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    resource.setrlimit(resource.RLIMIT_CPU, (int(TIMEOUT_S), int(TIMEOUT_S)))
    try:
        found = described(path)
    except ModelError as error:
        found = {"reason": str(error)}
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
