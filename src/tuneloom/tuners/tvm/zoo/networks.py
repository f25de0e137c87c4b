"""Three networks written out node by node: ResNet-18, MobileNet V2, a transformer encoder."""

import math
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import onnx
from tuneloom.tuners.tvm.zoo.weights import WeightMaker

_OPSET = 17
_IMAGE = (1, 3, 224, 224)
_CLASSES = 1000


class GraphWriter:
    """Collects nodes and seeded parameters, and names every value it makes."""

    def __init__(self, seed: int) -> None:
        self.make = WeightMaker(seed)
        self._nodes: list[Any] = []
        self._parameters: list[Any] = []

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its one output."""
        output = f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(onnx.helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def parameter(self, values: Any) -> str:
        """Add a constant and return its name."""
        name = f"parameter_{len(self._parameters)}"
        self._parameters.append(onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def finish(self, name: str, given: tuple[str, tuple[int, ...]], output: str, shape: Any) -> Any:
        """The checked model with one input and one output."""
        entry = onnx.helper.make_tensor_value_info(given[0], onnx.TensorProto.FLOAT, given[1])
        result = onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, shape)
        graph = onnx.helper.make_graph(self._nodes, name, [entry], [result], self._parameters)
        model = onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", _OPSET)], ir_version=8
        )
        onnx.checker.check_model(model)
        return model

    def conv(
        self, data: str, channels: tuple[int, int], kernel: int, stride: int = 1, groups: int = 1
    ) -> str:
        """A convolution that keeps the size up to its stride, without bias."""
        inside, outside = channels
        shape = (outside, inside // groups, kernel, kernel)
        weight = self.parameter(self.make.he(shape, math.prod(shape[1:])))
        pads, size = [kernel // 2] * 4, [kernel, kernel]
        return self.node(
            "Conv", data, weight, kernel_shape=size, strides=[stride] * 2, pads=pads, group=groups
        )

    def norm(self, data: str, channels: int, gain: float = 1.0) -> str:
        """Batch normalisation with the statistics of a trained layer."""
        make, shape = self.make, (channels,)
        values = (
            make.around(shape, gain),
            make.normal(shape, 0.05),
            make.normal(shape, 0.05),
            make.around(shape, 1.0),
        )
        return self.node("BatchNormalization", data, *(self.parameter(value) for value in values))

    def dense(self, data: str, inside: int, outside: int) -> str:
        """A matrix product with bias over the last axis."""
        weight = self.parameter(self.make.normal((inside, outside), math.sqrt(1.0 / inside)))
        bias = self.parameter(self.make.normal((outside,), 0.05))
        return self.node("Add", self.node("MatMul", data, weight), bias)

    def classifier(self, data: str, channels: int) -> str:
        """Average over the image, one dense layer to the classes."""
        flat = self.node("Flatten", self.node("GlobalAveragePool", data), axis=1)
        weight = self.parameter(self.make.he((_CLASSES, channels), 2 * channels))
        bias = self.parameter(self.make.normal((_CLASSES,), 0.05))
        return self.node("Gemm", flat, weight, bias, transB=1)


def resnet18(seed: int) -> Any:
    """ResNet-18 for 224×224 images."""
    net = GraphWriter(seed)
    x = net.node("Relu", net.norm(net.conv("image", (3, 64), 7, 2), 64))
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inside = 64
    for outside in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and outside != 64 else 1
            x = _basic_block(net, x, (inside, outside), stride)
            inside = outside
    return net.finish("resnet18", ("image", _IMAGE), net.classifier(x, 512), (1, _CLASSES))


def _basic_block(net: GraphWriter, data: str, channels: tuple[int, int], stride: int) -> str:
    inside, outside = channels
    x = net.node("Relu", net.norm(net.conv(data, channels, 3, stride), outside))
    x = net.norm(net.conv(x, (outside, outside), 3), outside, 0.5)
    shortcut = data
    if stride != 1 or inside != outside:
        shortcut = net.norm(net.conv(data, channels, 1, stride), outside)
    return net.node("Relu", net.node("Add", x, shortcut))


_INVERTED = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""MobileNet V2's stages: expansion, channels, repeats, stride of the first repeat."""


def mobilenet_v2(seed: int) -> Any:
    """MobileNet V2 at width 1.0 for 224×224 images."""
    net = GraphWriter(seed)
    x = _relu6(net, net.norm(net.conv("image", (3, 32), 3, 2), 32))
    inside = 32
    for expansion, outside, repeats, first_stride in _INVERTED:
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            x = _inverted_block(net, x, (inside, outside), expansion, stride)
            inside = outside
    x = _relu6(net, net.norm(net.conv(x, (320, 1280), 1), 1280))
    return net.finish("mobilenet_v2", ("image", _IMAGE), net.classifier(x, 1280), (1, _CLASSES))


def _relu6(net: GraphWriter, data: str) -> str:
    low, high = (net.parameter(np.float32(value)) for value in (0.0, 6.0))
    return net.node("Clip", data, low, high)


def _inverted_block(
    net: GraphWriter, data: str, channels: tuple[int, int], expansion: int, stride: int
) -> str:
    inside, outside = channels
    wide = inside * expansion
    x = data
    if expansion != 1:
        x = _relu6(net, net.norm(net.conv(x, (inside, wide), 1), wide))
    x = _relu6(net, net.norm(net.conv(x, (wide, wide), 3, stride, groups=wide), wide))
    residual = stride == 1 and inside == outside
    x = net.norm(net.conv(x, (wide, outside), 1), outside, 0.5 if residual else 1.0)
    return net.node("Add", data, x) if residual else x


_TOKENS, _WIDTH, _HEADS, _LAYERS, _HIDDEN = 128, 256, 4, 4, 1024


def transformer_encoder(seed: int) -> Any:
    """Four encoder layers of width 256 over 128 embedded tokens."""
    net = GraphWriter(seed)
    x = "embeddings"
    for _ in range(_LAYERS):
        x = _layer_norm(net, net.node("Add", x, _attention(net, x)))
        x = _layer_norm(net, net.node("Add", x, _feed_forward(net, x)))
    shape = (1, _TOKENS, _WIDTH)
    return net.finish("transformer", ("embeddings", shape), x, shape)


def _attention(net: GraphWriter, data: str) -> str:
    head = _WIDTH // _HEADS
    split = net.parameter(np.array([1, _TOKENS, _HEADS, head], dtype=np.int64))
    merge = net.parameter(np.array([1, _TOKENS, _WIDTH], dtype=np.int64))
    query, key, value = (
        net.node(
            "Transpose", net.node("Reshape", net.dense(data, _WIDTH, _WIDTH), split), perm=[0, 2, *order]
        )
        for order in ((1, 3), (3, 1), (1, 3))
    )
    scale = net.parameter(np.float32(1.0 / math.sqrt(head)))
    scores = net.node("Mul", net.node("MatMul", query, key), scale)
    mixed = net.node("MatMul", net.node("Softmax", scores, axis=-1), value)
    merged = net.node("Reshape", net.node("Transpose", mixed, perm=[0, 2, 1, 3]), merge)
    return net.dense(merged, _WIDTH, _WIDTH)


def _feed_forward(net: GraphWriter, data: str) -> str:
    x = net.dense(data, _WIDTH, _HIDDEN)
    return net.dense(_gelu(net, x), _HIDDEN, _WIDTH)


def _gelu(net: GraphWriter, data: str) -> str:
    root, one, half = (net.parameter(np.float32(value)) for value in (math.sqrt(2.0), 1.0, 0.5))
    bell = net.node("Add", net.node("Erf", net.node("Div", data, root)), one)
    return net.node("Mul", net.node("Mul", data, bell), half)


def _layer_norm(net: GraphWriter, data: str) -> str:
    gain = net.parameter(net.make.around((_WIDTH,), 1.0))
    bias = net.parameter(net.make.normal((_WIDTH,), 0.05))
    return net.node("LayerNormalization", data, gain, bias, axis=-1)
