"""How much a model needs is known when it is opened, before anything is tuned."""

from pathlib import Path

import pytest

from support.models.onnx_files import write_network
from tuneloom.backends.cpu.backend import CpuBackend
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import TargetError
from tuneloom.model import ModelRecipe
from tuneloom.tuners.tvm.models.opening import open_model


def test_a_model_is_refused_when_its_device_can_not_hold_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, asked = write_network(tmp_path / "net.onnx"), list[int]()

    def refuse(_self: CpuBackend, needed_bytes: int, _target: TargetSpec) -> None:
        asked.append(needed_bytes)
        raise TargetError("too large")

    monkeypatch.setattr(CpuBackend, "require_memory", refuse)
    found = open_model(ModelRecipe(key="net", source=str(path), shapes={}, target="cpu"))
    assert isinstance(found, TargetError) and str(found) == "too large"
    assert asked[0] >= 8 * 8 * 4, "a convolution of eight by eight channels"
