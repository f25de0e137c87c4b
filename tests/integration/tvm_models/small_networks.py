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


def some_points(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.add("Relu", net.conv("x", (16, 8, 3, 3), pads=[1, 1, 1, 1]))
    return (1, 8, 9, 12), [net.conv(hidden, (24, 16, 1, 1), strides=[2, 3])]


def transformed(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.add("Relu", net.conv("x", (48, 32, 3, 3), pads=[1, 1, 1, 1]))
    return (1, 32, 22, 17), [net.add("Add", hidden, net.conv(hidden, (48, 48, 3, 3), pads=[1, 1, 1, 1]))]


def transformed_along_an_axis(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.add("Relu", net.conv("x", (48, 32, 5, 1), pads=[2, 0, 2, 0]))
    across = net.add("Add", hidden, net.conv(hidden, (48, 48, 1, 3), pads=[0, 1, 0, 1]))
    return (2, 32, 22, 8), [across, net.conv(hidden, (48, 48, 1, 5)), net.conv(hidden, (48, 48, 3, 1))]


def transformed_signal(net: Net) -> tuple[tuple[int, ...], list[str]]:
    return (1, 32, 45), [net.add("Relu", net.conv("x", (48, 32, 5), pads=[2, 2]))]


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


def groups_of_any_width(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.conv("x", (150, 33, 3, 3), group=3, strides=[2, 2], pads=[1, 1, 1, 1])
    paired = net.add("Relu", net.conv(hidden, (168, 25, 1, 1), group=6))
    return (1, 99, 13, 13), [net.add("Add", paired, net.conv(paired, (168, 24, 3, 3), group=7, pads=[1] * 4))]


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


def reduced_images(net: Net) -> tuple[tuple[int, ...], list[str]]:
    """Sums and extremes over whole images, and along their rows alone; some channels don't fill a vector."""
    outputs = []
    for channels in (32, 24):
        hidden = net.conv("x", (channels, 16, 1, 1))
        for kind in ("ReduceMean", "ReduceMax", "ReduceMin"):
            outputs += [net.add(kind, hidden, axes=[2, 3], keepdims=keepdims) for keepdims in (0, 1)]
        outputs.append(net.add("ReduceMax", hidden, axes=[3], keepdims=0))
        outputs.append(net.add("ReduceSum", hidden, net.constant(np.array([2, 3])), keepdims=0))
    return (1, 16, 5, 40), outputs


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


def lines(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.add("Relu", net.conv("x", (24, 1, 10), strides=[5]))
    hidden = net.conv(hidden, (20, 24, 3), pads=[2, 2], dilations=[2])
    deep = net.conv(hidden, (20, 1, 3), group=20, pads=[1, 1])
    return (1, 1, 403), [net.add("Add", deep, hidden), net.add("GlobalAveragePool", deep)]


def group_norms(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.conv("x", (24, 3, 3, 3))
    flat = net.add("Reshape", hidden, net.constant(np.array([1, 4, -1], dtype=np.int64)))
    normed = net.add("InstanceNormalization", flat, net.draw(4), net.draw(4))
    shaped = net.add("Reshape", normed, net.constant(np.array([1, 24, 9, 7], dtype=np.int64)))
    return (1, 3, 11, 9), [net.add("Mul", shaped, net.draw(24, 1, 1))]


def layer_norms(net: Net) -> tuple[tuple[int, ...], list[str]]:
    own = net.add("LayerNormalization", "x", net.draw(70), net.draw(70), axis=-1)
    mean = net.add("ReduceMean", own, axes=[-1], keepdims=1)
    away = net.add("Sub", own, mean)
    square = net.add("Pow", away, net.constant(np.float32(2.0)))
    variance = net.add("ReduceMean", square, axes=[-1], keepdims=1)
    root = net.add("Sqrt", net.add("Add", variance, net.constant(np.float32(1e-5))))
    return (2, 13, 70), [net.add("Mul", net.add("Div", away, root), net.draw(70))]


def line_sums(net: Net) -> tuple[tuple[int, ...], list[str]]:
    kept = net.add("ReduceMean", "x", axes=[2], keepdims=1)
    return (3, 5, 67), [
        net.add("Softmax", "x", axis=-1),
        net.add("Softmax", "x", axis=1),
        net.add("ReduceMean", "x", axes=[-1], keepdims=0),
        net.add("Sub", "x", kept),
    ]


def transposed(net: Net) -> tuple[tuple[int, ...], list[str]]:
    twice = net.add("ConvTranspose", "x", net.draw(20, 12, 2, 2), net.draw(12), strides=[2, 2])
    pads: dict[str, Any] = {"strides": [2, 2], "pads": [1, 1, 1, 1]}
    wide = net.add("ConvTranspose", "x", net.draw(20, 16, 4, 4), **pads)
    odd = net.add("ConvTranspose", "x", net.draw(20, 9, 3, 3), output_padding=[1, 1], **pads)
    far = net.add("ConvTranspose", "x", net.draw(20, 8, 2, 3), strides=[3, 2], pads=[0, 1, 1, 0])
    same = net.add("ConvTranspose", "x", net.draw(20, 8, 3, 3), pads=[1, 1, 1, 1])
    return (1, 20, 7, 6), [net.add("Relu", twice), wide, odd, far, same]


def transposed_into_few(net: Net) -> tuple[tuple[int, ...], list[str]]:
    """Results with fewer channels than a vector has lanes, as masks have."""
    pads: dict[str, Any] = {"strides": [2, 2], "pads": [1, 1, 1, 1]}
    mask = net.add("ConvTranspose", "x", net.draw(20, 1, 2, 2), net.draw(1), strides=[2, 2])
    odd = net.add("ConvTranspose", "x", net.draw(20, 3, 3, 3), output_padding=[1, 1], **pads)
    wide = net.add("ConvTranspose", "x", net.draw(20, 5, 4, 4), **pads)
    far = net.add("ConvTranspose", "x", net.draw(20, 2, 2, 3), strides=[3, 2], pads=[0, 1, 1, 0])
    return (1, 20, 7, 6), [net.add("Sigmoid", mask), odd, wide, far]


def resized(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.conv("x", (18, 5, 3, 3), pads=[1, 1, 1, 1])
    scales = net.constant(np.array([1, 1, 2, 2], dtype=np.float32))
    ways = (("linear", "half_pixel"), ("nearest", "asymmetric"), ("linear", "align_corners"))
    made = [
        net.add(
            "Resize", hidden, "", scales, mode=mode, coordinate_transformation_mode=how, nearest_mode="floor"
        )
        for mode, how in ways
    ]
    return (1, 5, 12, 9), [net.conv(made[0], (16, 18, 3, 3)), *made[1:]]


def slopes(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.add("PRelu", net.conv("x", (10, 3, 3, 3)), net.draw(10, 1, 1))
    pooled = net.add("MaxPool", hidden, kernel_shape=[2, 2], strides=[2, 2])
    return (1, 3, 14, 16), [net.add("PRelu", pooled, net.draw(1))]


def activations(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.conv("x", (12, 4, 1, 1))
    swished = net.add("Mul", hidden, net.add("Sigmoid", hidden))
    large = net.add("Mul", "x", net.constant(np.float32(200.0)))
    return (1, 4, 9, 7), [swished, net.add("Sigmoid", large), net.add("Tanh", "x")]


def attention(net: Net, width: int = 24) -> tuple[tuple[int, ...], list[str]]:
    split = net.constant(np.array([1, 37, 48 // width, width], dtype=np.int64))
    q, k, v = (
        net.add("Transpose", net.add("Reshape", net.add("MatMul", "x", net.draw(48, 48)), split), perm=perm)
        for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    )
    scores = net.add("Softmax", net.add("MatMul", q, k), axis=-1)
    return (1, 37, 48), [net.add("MatMul", scores, v)]


def narrow_heads(net: Net) -> tuple[tuple[int, ...], list[str]]:
    return attention(net, width=8)


def ragged_products(net: Net) -> tuple[tuple[int, ...], list[str]]:
    return (23, 1, 31), [
        net.add("Add", net.add("MatMul", "x", net.draw(31, 19)), net.draw(19)),
        net.add("MatMul", "x", net.draw(31, 64)),
        net.add("MatMul", "x", net.draw(31, 2)),
    ]


def ragged_widths(net: Net) -> tuple[tuple[int, ...], list[str]]:
    hidden = net.add("Relu", net.conv("x", (24, 8, 1, 5), pads=[0, 2, 0, 2]))
    return (1, 8, 3, 59), [net.conv(hidden, (16, 24, 1, 3), strides=[1, 2]), net.conv("x", (16, 8, 1, 1))]


NETWORKS: dict[str, Callable[[Net], tuple[tuple[int, ...], list[str]]]] = {
    made.__name__: made
    for made in (
        first_layer,
        odd_channels,
        some_points,
        transformed,
        transformed_along_an_axis,
        transformed_signal,
        depthwise,
        grouped,
        uneven_groups,
        groups_of_any_width,
        whole_groups,
        dilated,
        norms,
        norm_of_a_shared_convolution,
        concat_into_narrow,
        concat_read_twice,
        concat_of_odd_channels,
        pools,
        reduced_images,
        elementwise,
        classifier,
        rows_times_matrix,
        returned_before_it_is_read,
        lines,
        group_norms,
        layer_norms,
        line_sums,
        transposed,
        transposed_into_few,
        resized,
        slopes,
        activations,
        attention,
        narrow_heads,
        ragged_products,
        ragged_widths,
    )
}


def network(name: str) -> Any:
    """One of the networks as an ONNX model."""
    net = Net()
    shape, outputs = NETWORKS[name](net)
    return net.model(shape, *outputs)
