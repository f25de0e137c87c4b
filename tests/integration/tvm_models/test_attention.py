"""Attention as one kernel agrees with ONNX Runtime, and is used only for what it computes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

from support.models.graphs import model_of
from tuneloom.backends.cpu.layouts.operators import attending
from tuneloom.backends.cpu.templates.generator import has_template
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.tasks import kernel_calls, kernel_module
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel

Import = Callable[[Any], ImportedModel]
MASKED = [("Mul", "scale"), ("Add", "mask")]
"""What happens to scores: an operator, and its other side."""


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attending, "pays", lambda *_: True)


def net(
    *heads: tuple[int, ...], steps: Sequence[tuple[str, str]] = MASKED, outputs: Sequence[str] = ()
) -> Any:
    """Attentions side by side; of each the sizes (matrices, rows, keys, inner, width)."""
    nodes, given = [], {}
    for number, (count, rows, keys, inner, width) in enumerate(heads):
        names = {name: f"{name}{number}" for name in ("q", "k", "v", "mask", "y")}
        given |= {names["q"]: (1, count, rows, inner), names["k"]: (1, count, inner, keys)}
        given |= {names["v"]: (1, count, keys, width), names["mask"]: (rows, keys)}
        nodes.append(helper.make_node("MatMul", [names["q"], names["k"]], [f"s{number}_0"]))
        for at, (kind, other) in enumerate(steps):
            sides = [f"s{number}_{at}", names.get(other, other)]
            nodes.append(helper.make_node(kind, sides, [f"s{number}_{at + 1}"]))
        nodes.append(helper.make_node("Softmax", [f"s{number}_{len(steps)}"], [f"w{number}"], axis=-1))
        nodes.append(helper.make_node("MatMul", [f"w{number}", names["v"]], [names["y"]]))
    results = [*(f"y{number}" for number in range(len(heads))), *outputs]
    return model_of(nodes, given, dict.fromkeys(results), {"scale": np.float32(0.3)})


def kernels(lowered: LoweredModel) -> list[str]:
    return [name for name in kernel_calls(lowered.module) if name.startswith("attention")]


@pytest.mark.parametrize("cores", [1, 2])
def test_it_agrees_whatever_the_shapes(
    cores: int, imported: Import, agrees: Callable[[Any, CompiledModel], None]
) -> None:
    target = resolve_target("cpu", cores=cores)
    model = net((2, 13, 50, 10, 13), (3, 5, 9, 8, 6), (1, 24, 64, 16, 32))
    lowered = lower(imported(model), target)
    assert len(kernels(lowered)) == 3
    assert all(has_template(kernel_module(lowered.module[name]), target) for name in kernels(lowered))
    agrees(model, build_model(lowered, {}, guess=True))


@pytest.mark.parametrize(
    ("steps", "outputs", "found"),
    [
        ([], (), 1),
        ([("Div", "scale")], (), 1),
        ([("Add", "mask"), ("Mul", "scale")], (), 0),
        ([("Add", "mask"), ("Add", "mask")], (), 0),
        (MASKED, ("w0",), 0),
        (MASKED, ("s0_1",), 0),
    ],
    ids=["bare", "divided", "scaled mask", "two masks", "weights read", "scores read"],
)
def test_it_is_found_only_where_nothing_else_is_computed_or_read(
    steps: Any, outputs: Any, found: int, imported: Import, host: TargetSpec
) -> None:
    model = net((1, 4, 16, 8, 8), steps=steps, outputs=outputs)
    assert len(kernels(lower(imported(model), host))) == found
