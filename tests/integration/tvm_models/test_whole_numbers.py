"""Models that are in whole numbers already: exact, by dot products, whatever form their authors chose."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tuneloom.backends.cpu.templates.generator import has_template
from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, LowerOptions, lower
from tuneloom.tuners.tvm.lowering.tasks import extract, unpack
from tuneloom.tuners.tvm.models.compiling.building import build_model

RANDOM = np.random.default_rng(11)
node = helper.make_node
Values = dict[str, Any]


def whole(shape: tuple[int, ...], kind: str = "int8") -> Any:
    limits = np.iinfo(kind)
    return RANDOM.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)


def single(value: float) -> Any:
    return np.float32(value)


def model(nodes: list[Any], data: tuple[int, tuple[int, ...]], result: int, values: Values) -> Any:
    kind, shape = data
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", result, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def integer_convolutions(kind: str) -> Any:
    """An image of few channels, then a convolution in groups, one of each channel, and one of all."""
    scales = {"s": single(0.02), "zero": np.array(3, kind), "w_zero": np.int8(0), "t": single(0.004)}
    weights = {
        "first": whole((16, 3, 3, 3)),
        "groups": whole((16, 4, 3, 3)),
        "each": whole((16, 1, 3, 3)),
        "all": whole((24, 16, 3, 3)),
        "steps": RANDOM.uniform(1e-4, 2e-3, 24).astype(np.float32),
        "bias": RANDOM.integers(-9999, 9999, 24, dtype=np.int32),
        "w_zeros": np.zeros(24, np.int8),
    }

    def convolution(data: str, weight: str, name: str, **attributes: Any) -> Any:
        each, zeros, more = ("steps", "w_zeros", ["bias"]) if weight == "all" else ("t", "w_zero", [])
        inputs = [data, "s", "zero", weight, each, zeros, "s", "zero", *more]
        return node("QLinearConv", inputs, [name], pads=[1, 1, 1, 1], **attributes)

    pooled = node("MaxPool", ["c"], ["d"], kernel_shape=[2, 2])
    nodes = [
        convolution("x", "first", "a", strides=[2, 2]),
        convolution("a", "groups", "b", group=4),
        convolution("b", "each", "c", group=16),
        *([pooled] if kind == "uint8" else []),  # ONNX's own evaluator can't pool numbers with a sign
        convolution("d" if kind == "uint8" else "c", "all", "e"),
        node("ConvInteger", ["e", "last", "zero"], ["y"]),
    ]
    values = {**scales, **weights, "last": whole((8, 24, 1, 1))}
    return model(nodes, (helper.np_dtype_to_tensor_dtype(np.dtype(kind)), (1, 3, 10, 9)), 6, values)


def product_with_a_zero_point_of_the_data() -> Any:
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("MatMulInteger", ["q", "w", "z"], ["sums"]),
        node("Cast", ["sums"], ["real"], to=TensorProto.FLOAT),
        node("Mul", ["real", "s"], ["y"]),
    ]
    return model(nodes, (TensorProto.FLOAT, (2, 3, 16)), 1, {"w": whole((16, 24))})


def dequantised_network() -> Any:
    """Conversions around everything: a convolution, a pooling, a way around, and a product with a bias."""
    values = {
        "s": single(0.05),
        "z": np.uint8(120),
        "t": single(0.02),
        "u": np.int8(0),
        "v": single(0.037),
        "w": whole((16, 16, 3, 3)),
        "steps": RANDOM.uniform(1e-3, 2e-3, 16).astype(np.float32),
        "zeros": np.zeros(16, np.int8),
        "m": whole((10, 16)),
        "n": RANDOM.integers(-99, 99, 10, np.int32),
        "bias": RANDOM.standard_normal(16).astype(np.float32),
        "st": single(0.037) * single(0.02),
    }

    def pair(name: str, step: str = "s") -> list[Any]:
        back = node("DequantizeLinear", [f"{name}_q", step, "z"], [f"{name}_r"])
        return [node("QuantizeLinear", [name, step, "z"], [f"{name}_q"]), back]

    nodes = [
        *pair("x"),
        node("DequantizeLinear", ["w", "steps", "zeros"], ["w_r"], axis=0),
        node("DequantizeLinear", ["m", "t", "u"], ["m_r"]),
        node("DequantizeLinear", ["n", "st"], ["n_r"]),
        node("Conv", ["x_r", "w_r", "bias"], ["a"], pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"]),
        *pair("b"),
        node("MaxPool", ["b_r"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        *pair("c"),
        node("Conv", ["c_r", "w_r"], ["d"], pads=[1, 1, 1, 1]),
        node("Add", ["d", "c_r"], ["e"]),
        *pair("e"),
        node("GlobalAveragePool", ["e_r"], ["f"]),
        *pair("f", "v"),  # a mean in the steps of its values may lie between two of them
        node("Flatten", ["f_r"], ["g"]),
        node("Gemm", ["g", "m_r", "n_r"], ["y"], transB=1),
    ]
    return model(nodes, (TensorProto.FLOAT, (1, 16, 8, 8)), 1, values)


def product_of_two_dequantised() -> Any:
    """Both sides are quantised when the model runs, each with a zero point of its own, as in attention."""
    values = {
        "s": single(0.03),
        "z": np.uint8(120),
        "t": single(0.025),
        "u": np.uint8(131),
        "turned": np.array([1, 2, 24, 20], dtype=np.int64),
    }
    nodes = [
        node("Reshape", ["x", "turned"], ["k"]),
        node("QuantizeLinear", ["x", "s", "z"], ["x_q"]),
        node("DequantizeLinear", ["x_q", "s", "z"], ["x_r"]),
        node("QuantizeLinear", ["k", "t", "u"], ["k_q"]),
        node("DequantizeLinear", ["k_q", "t", "u"], ["k_r"]),
        node("MatMul", ["x_r", "k_r"], ["y"]),
    ]
    return model(nodes, (TensorProto.FLOAT, (1, 2, 20, 24)), 1, values)


def data_for(proto: Any) -> Any:
    value = proto.graph.input[0].type.tensor_type
    shape = tuple(dim.dim_value for dim in value.shape.dim)
    kind = helper.tensor_dtype_to_np_dtype(value.elem_type)
    return whole(shape, str(kind)) if kind.kind in "iu" else RANDOM.uniform(-3, 4, shape).astype(kind)


def outputs(lowered: LoweredModel, data: Any) -> Any:
    return build_model(lowered, {}, guess=True).open_here().run([data])[0]


@pytest.mark.parametrize(
    ("proto", "products"),
    [
        (integer_convolutions("uint8"), 2),  # and the first one, where vectors are narrow
        (integer_convolutions("int8"), 2),
        (product_with_a_zero_point_of_the_data(), 1),
        (dequantised_network(), 3),
        (product_of_two_dequantised(), 3),  # and the sums of rows and columns, for the zero points
    ],
    ids=[
        *("unsigned convolutions", "signed convolutions", "dynamic product", "conversions around"),
        "product of two",
    ],
)
def test_a_model_in_whole_numbers_is_computed_by_dot_products_as_onnx_says(
    proto: Any, products: int, imported: Callable[[Any], ImportedModel], host: TargetSpec
) -> None:
    found, data = imported(proto), data_for(proto)
    lowered = lower(found, host)
    with np.errstate(invalid="ignore"):  # it pads with NaN and casts that
        expected = ReferenceEvaluator(proto).run(None, {"x": data})[0]
    np.testing.assert_allclose(outputs(lowered, data), expected, rtol=1e-5, atol=1e-5)
    plain = build_model(lower(found, host, LowerOptions(layout="plain")), {}).open_here().run([data])[0]
    np.testing.assert_allclose(plain, expected, rtol=1e-5, atol=1e-5)
    if host.dots is not None:
        tasks = [task for task in extract(lowered) if "dots" in task.name]
        assert sum(task.weight for task in tasks) >= products
        assert all(has_template(unpack(task).module, host) for task in tasks)
