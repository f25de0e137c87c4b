"""Small ONNX graphs, each around one thing the layout rewriter must get right."""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Net:
    """Collects nodes; every value gets the next free name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._random = np.random.default_rng(0)

    def constant(self, values: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def draw(self, *shape: int, spread: float = 1.0) -> str:
        return self.constant((self._random.standard_normal(shape) * spread).astype(np.float32))

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=f"n_{name}", **attributes))
        return name

    def conv(self, data: str, weight: tuple[int, ...], bias: bool = True, **attributes: Any) -> str:
        fan = int(np.prod(weight[1:]))
        inputs = [data, self.draw(*weight, spread=fan**-0.5)]
        if bias:
            inputs.append(self.draw(weight[0]))
        return self.add("Conv", *inputs, kernel_shape=list(weight[2:]), **attributes)

    def norm(self, data: str, channels: int) -> str:
        positive = self.constant(self._random.uniform(0.5, 1.5, channels).astype(np.float32))
        return self.add(
            "BatchNormalization",
            data,
            self.draw(channels),
            self.draw(channels),
            self.draw(channels),
            positive,
        )

    def model(self, shape: tuple[int | str, ...], *outputs: str) -> Any:
        entry = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "net", [entry], results, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def first_layer(net: Net) -> tuple[tuple[int, ...], list[str]]:
    return (1, 3, 23, 19), [net.add("Relu", net.conv("x", (24, 3, 7, 7), strides=[2, 2], pads=[3, 3, 3, 3]))]


def odd_channels(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.conv("x", (24, 16, 1, 1))
    return (1, 16, 9, 9), [net.conv(hidden, (10, 24, 3, 3), pads=[1, 1, 1, 1])]


def transformed(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.add("Relu", net.conv("x", (48, 32, 3, 3), pads=[1, 1, 1, 1]))
    return (1, 32, 22, 17), [net.add("Add", hidden, net.conv(hidden, (48, 48, 3, 3), pads=[1, 1, 1, 1]))]


def depthwise(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.conv("x", (40, 1, 3, 3), group=40, pads=[1, 1, 1, 1])
    return (1, 40, 12, 12), [
        net.conv(hidden, (40, 1, 5, 5), group=40, strides=[2, 2], pads=[2, 2, 2, 2], bias=False)
    ]


def grouped(net: Net) -> tuple[tuple[int, ...], list[str]]:
    return (1, 24, 8, 8), [net.conv("x", (48, 6, 3, 3), group=4, pads=[1, 1, 1, 1])]


def uneven_groups(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.conv("x", (272, 68, 1, 1), group=4)
    return (1, 272, 5, 5), [net.conv(hidden, (72, 68, 3, 3), group=4, pads=[1, 1, 1, 1])]


def whole_groups(net: Net) -> tuple[tuple[int, ...], list[str]]:
    return (1, 64, 8, 8), [net.conv("x", (96, 32, 3, 3), group=2, pads=[1, 1, 1, 1])]


def dilated(net: Net) -> tuple[tuple[int, ...], list[str]]:
    return (1, 16, 14, 14), [net.conv("x", (16, 16, 3, 3), dilations=[2, 2], pads=[2, 2, 2, 2])]


def norms(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.norm(net.conv("x", (32, 16, 1, 1), bias=False), 32)
    twice = net.add("Relu", net.norm(net.add("Relu", hidden), 32))
    return (1, 16, 10, 10), [twice]


def norm_of_a_shared_convolution(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.conv("x", (32, 16, 3, 3))
    return (1, 16, 10, 10), [net.add("Add", net.norm(hidden, 32), hidden)]


def concat_into_narrow(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.conv("x", (16, 16, 1, 1))
    parts = [net.add("Relu", net.conv(hidden, (32, 16, k, k), pads=[k // 2] * 4)) for k in (1, 3)]
    joined = net.add("Concat", *parts, axis=1)
    pooled = net.add("MaxPool", joined, kernel_shape=[3, 3], strides=[2, 2])
    return (1, 16, 15, 15), [net.conv(pooled, (16, 64, 1, 1))]


def concat_read_twice(net: Net) -> tuple[tuple[int, ...], list[str]]:
    parts = [net.conv("x", (32, 16, 1, 1)), net.conv("x", (16, 16, 1, 1))]
    joined = net.add("Concat", *parts, axis=1)
    return (1, 16, 8, 8), [net.conv(joined, (16, 48, 1, 1)), net.add("Relu", joined)]


def concat_of_odd_channels(net: Net) -> tuple[tuple[int, ...], list[str]]:
    parts = [net.conv("x", (20, 16, 1, 1)), net.conv("x", (12, 16, 1, 1))]
    return (1, 16, 8, 8), [net.conv(net.add("Concat", *parts, axis=1), (16, 32, 1, 1))]


def pools(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.conv("x", (32, 16, 1, 1))
    window: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    return (1, 16, 14, 14), [
        net.add("MaxPool", hidden, **window),
        net.add("AveragePool", hidden, **window),
        net.add("AveragePool", hidden, count_include_pad=1, **window),
        net.add("MaxPool", hidden, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
        net.add("GlobalAveragePool", hidden),
    ]


def elementwise(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.conv("x", (24, 16, 1, 1))
    low, high = (net.constant(np.float32(value)) for value in (0.0, 6.0))
    clipped = net.add("Clip", hidden, low, high)
    mixed = net.add("Mul", net.add("Sigmoid", clipped), net.draw(24, 1, 1))
    return (1, 16, 6, 6), [net.add("Div", mixed, net.constant(np.float32(3.0))), net.add("Tanh", hidden)]


def classifier(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.add("Flatten", net.add("GlobalAveragePool", net.conv("x", (48, 16, 1, 1))), axis=1)
    logits = net.add("Gemm", hidden, net.draw(100, 48), net.draw(100), transB=1)
    return (1, 16, 7, 7), [net.add("Softmax", logits, axis=1)]


def rows_times_matrix(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.add("MatMul", "x", net.draw(32, 64))
    return (1, 12, 32), [net.add("Add", hidden, net.draw(64)), net.add("Erf", hidden)]


def returned_before_it_is_read(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.conv("x", (32, 16, 3, 3), pads=[1, 1, 1, 1])
    return (1, 16, 8, 8), [hidden, net.add("Relu", hidden)]


NETWORKS: dict[str, Callable[[Net], tuple[tuple[int, ...], list[str]]]] = {
    made.__name__: made
    for made in (
        first_layer,
        odd_channels,
        transformed,
        depthwise,
        grouped,
        uneven_groups,
        whole_groups,
        dilated,
        norms,
        norm_of_a_shared_convolution,
        concat_into_narrow,
        concat_read_twice,
        concat_of_odd_channels,
        pools,
        elementwise,
        classifier,
        rows_times_matrix,
        returned_before_it_is_read,
    )
}


def network(name: str) -> Any:
    """One of the networks as an ONNX model."""
    net = Net()
    shape, outputs = NETWORKS[name](net)
    return net.model(shape, *outputs)
