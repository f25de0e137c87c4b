"""Models in bfloat16: each operator computed in single precision and rounded once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tuneloom.backends.cpu.templates.generator import has_template
from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.bundles.using import _write
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.lowering.tasks import extract, unpack
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.compiled import load_compiled
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.tolerances import BY_TYPE, tolerance_for
from tuneloom.tuners.tvm.runner.weights import stored_parameters

RANDOM = np.random.default_rng(5)
HALF = np.dtype(ml_dtypes.bfloat16)


def network() -> Any:
    node = helper.make_node
    shapes = {"w": (16, 3, 3, 3), "b": (16,), "m": (16, 24), "table": (50, 24), "scale": (24,)}
    values = {name: RANDOM.standard_normal(shape) / 3 for name, shape in shapes.items()}
    nodes = [
        node("Conv", ["x", "w", "b"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Sigmoid", ["a"], ["s"]),
        node("Mul", ["a", "s"], ["c"]),
        node("GlobalAveragePool", ["c"], ["d"]),
        node("Flatten", ["d"], ["e"]),
        node("MatMul", ["e", "m"], ["f"]),
        node("Gather", ["table", "at"], ["t"]),
        node("Add", ["f", "t"], ["g"]),
        node("LayerNormalization", ["g", "scale"], ["h"]),
        node("Softmax", ["h"], ["y"]),
        node("Cast", ["h"], ["z"], to=TensorProto.FLOAT),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [
            helper.make_tensor_value_info("x", TensorProto.BFLOAT16, (1, 3, 12, 12)),
            helper.make_tensor_value_info("at", TensorProto.INT64, (1,)),
        ],
        [
            helper.make_tensor_value_info("y", TensorProto.BFLOAT16, (1, 24)),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, (1, 24)),
        ],
        [numpy_helper.from_array(value.astype(HALF), name) for name, value in values.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def test_a_model_in_bfloat16_comes_out_as_onnx_says_and_its_products_have_templates(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, tmp_path: Path
) -> None:
    proto = network()
    model = imported(proto)
    assert [info.dtype for info in (*model.inputs, *model.outputs)] == [
        *("bfloat16", "int64"),
        *("bfloat16", "float32"),
    ]
    lowered = lower(model, host)
    assert tolerance_for(lowered.module) == BY_TYPE["bfloat16"]
    products = [task for task in extract(lowered) if "conv2d" in task.name or "product" in task.name]
    assert len(products) == 2 and all(has_template(unpack(task).module, host) for task in products)
    values = [RANDOM.standard_normal((1, 3, 12, 12)).astype(HALF), np.array([7])]
    expected = ReferenceEvaluator(proto).run(None, dict(zip(("x", "at"), values, strict=True)))
    compiled = build_model(lowered, {}, guess=True)
    compiled.export(tmp_path)
    assert HALF in {value.dtype for value in stored_parameters(tmp_path).values()}, "not in the library"
    got = load_compiled(tmp_path, model.inputs, model.outputs).open_here().run(values)
    assert [one.dtype for one in got] == [HALF, np.float32]
    assert max(map(relative_difference, got, expected)) < BY_TYPE["bfloat16"]


def test_files_hold_float32_in_the_place_of_bfloat16(tmp_path: Path) -> None:
    _write(tmp_path / "y.npy", np.array([1.5, -2.0], HALF))
    found = np.load(tmp_path / "y.npy")
    assert found.dtype == np.float32 and found.tolist() == [1.5, -2.0]
