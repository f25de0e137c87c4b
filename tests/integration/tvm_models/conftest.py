"""What the tests of model compilation share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.importing.sources import ImportedModel, import_model
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel

Check = Callable[[Any, CompiledModel], None]


@pytest.fixture(scope="session")
def host() -> TargetSpec:
    return resolve_target("cpu")


@pytest.fixture
def imported(tmp_path: Path) -> Callable[[Any], ImportedModel]:
    """Import an ONNX model through a file, the way users do."""

    def through_file(model: Any) -> ImportedModel:
        path = tmp_path / "net.onnx"
        path.write_bytes(model.SerializeToString())
        return import_model(str(path))

    return through_file


@pytest.fixture
def agrees() -> Check:
    """Check a compiled model against ONNX Runtime on seeded inputs."""

    def check(model: Any, compiled: CompiledModel) -> None:
        random = np.random.default_rng(7)
        inputs = [random.standard_normal(info.shape).astype(info.dtype) for info in compiled.inputs]
        for ours, theirs in zip(compiled.open().run(inputs), reference(model, inputs), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4 * float(np.abs(theirs).max()))

    return check


@pytest.fixture
def runtime() -> Callable[[Any, list[Any]], list[Any]]:
    """What ONNX Runtime makes of a model's inputs."""
    return reference


def reference(model: Any, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    return list(session.run(None, dict(zip(names, inputs, strict=True))))
