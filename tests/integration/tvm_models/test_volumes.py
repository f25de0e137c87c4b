"""Convolutions of volumes and of several images at once agree with ONNX Runtime."""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import helper

from support.models.graphs import model_of
from tuneloom.backends.cpu.templates.generator import has_template
from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.lowering.tasks import extract, unpack
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel


def net(nodes: list[Any], shape: tuple[int, ...], **weights: tuple[int, ...]) -> Any:
    random = np.random.default_rng(4)
    values = {
        name: (random.standard_normal(size) / np.sqrt(np.prod(size[1:]))).astype(np.float32)
        for name, size in weights.items()
    }
    return model_of(nodes, {"x": shape}, {"y": None}, values)


def test_convolutions_of_volumes_have_templates_and_agree(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, agrees: Callable[[Any, CompiledModel], None]
) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["b"], pads=[1, 1, 1, 1, 1, 1]),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Conv", ["c", "d"], ["e"], pads=[1, 0, 1, 1, 0, 1], strides=[2, 1, 2]),
        helper.make_node("Conv", ["e", "f", "g"], ["h"]),
        helper.make_node("Add", ["h", "e"], ["i"]),
        helper.make_node("MaxPool", ["i"], ["y"], kernel_shape=[2, 2, 2], strides=[2, 2, 2]),
    ]
    model = net(
        nodes,
        (2, 3, 7, 9, 10),
        a=(20, 3, 3, 3, 3),
        d=(32, 20, 3, 3, 3),
        f=(32, 32, 1, 1, 1),
        g=(32, 1),
    )
    model.graph.initializer[-1].dims[:] = [32]
    lowered = lower(imported(model), host)
    convolutions = [task for task in extract(lowered) if "conv2d" in task.name or "winograd" in task.name]
    assert len(convolutions) >= 3
    assert all(has_template(unpack(task).module, host) for task in convolutions)
    agrees(model, build_model(lowered, {}, guess=True))


def test_several_images_at_once_go_through_tiles(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, agrees: Callable[[Any, CompiledModel], None]
) -> None:
    nodes = [helper.make_node("Conv", ["x", "a"], ["y"], pads=[1, 1, 1, 1])]
    model = net(nodes, (3, 64, 18, 15), a=(64, 64, 3, 3))
    lowered = lower(imported(model), host)
    assert any("winograd" in task.name for task in extract(lowered))
    agrees(model, build_model(lowered, {}, guess=True))
