"""Seeded weights for graphs that came without any."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.compiler.lazy import onnx

Array = NDArray[np.float32]

_BRANCH_GAIN = 0.5
"""Scale of a normalised branch that is added to a shortcut: sums then grow slowly."""

_KEEP_SIGN = ("MaxPool", "AveragePool", "Concat", "Reshape", "Transpose", "Dropout", "LRN")


class WeightMaker:
    """Draws parameters by the role they play; one seed, one sequence."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def normal(self, shape: tuple[int, ...], spread: float, centre: float = 0.0) -> Array:
        """Normally distributed values."""
        values = self._random.standard_normal(shape, dtype=np.float32)
        return (values * np.float32(spread) + np.float32(centre)).astype(np.float32)

    def around(self, shape: tuple[int, ...], centre: float) -> Array:
        """Positive values within a fifth of the centre."""
        return self._random.uniform(0.8 * centre, 1.2 * centre, shape).astype(np.float32)

    def he(self, shape: tuple[int, ...], fan_in: int) -> Array:
        """Weights that keep the second moment of rectified activations."""
        return self.normal(shape, float(np.sqrt(2.0 / fan_in)))


def fill_weights(model: Any, seed: int) -> Any:
    """Replace the constant parameters of a shipped graph by seeded weights.

    Returns the same model in the present form of the format: parameters are
    initialisers, and inputs are only what a caller has to give.
    """
    graph = model.graph
    maker = WeightMaker(seed)
    shapes = _parameter_shapes(graph)
    origin = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Reshape"}
    named = ((origin.get(name, name), role) for name, role in _roles(graph))
    roles = {name: role for name, role in named if name in shapes}
    kept = _kept_initializers(graph, roles)
    drawn = [
        onnx.numpy_helper.from_array(_draw(maker, role, shapes[name]), name)
        for name, role in sorted(roles.items())
    ]
    _replace(graph, drawn + kept)
    model.ir_version = max(model.ir_version, 8)
    return model


def _parameter_shapes(graph: Any) -> dict[str, tuple[int, ...]]:
    """Shapes of everything that stands for a float parameter."""
    by_name = {tensor.name: tensor for tensor in graph.initializer}
    shapes = {t.name: tuple(t.dims) for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in by_name:
            dims = onnx.numpy_helper.to_array(by_name[node.input[0]])
            shapes[node.output[0]] = tuple(int(dim) for dim in dims)
    return shapes


def _roles(graph: Any) -> Iterator[tuple[str, str]]:
    """What each input of each node is for."""
    consumers, rectified = _consumers(graph), _rectified(graph)
    for node in graph.node:
        names = list(node.input)
        if node.op_type == "Conv":
            weight = "weight" if names[0] in rectified else "linear_weight"
            yield from zip(names[1:], (weight, "bias"), strict=False)
        elif node.op_type == "Gemm":
            yield from zip(
                names[1:], ("linear_weight" if _transposed(node) else "matrix", "bias"), strict=False
            )
        elif node.op_type == "BatchNormalization":
            gain = "branch_gain" if "Sum" in consumers.get(node.output[0], ()) else "gain"
            yield from zip(names[1:], (gain, "bias", "mean", "variance"), strict=True)
        elif node.op_type == "Unsqueeze":
            yield names[0], "gain" if "Mul" in consumers.get(node.output[0], ()) else "bias"


def _rectified(graph: Any) -> set[str]:
    """Values that are never negative, so that weights must make up for the lost half."""
    found: set[str] = set()
    for node in graph.node:
        carried = node.op_type in _KEEP_SIGN and node.input[0] in found
        if node.op_type == "Relu" or carried:
            found.update(node.output)
    return found


def _consumers(graph: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in graph.node:
        for name in node.input:
            found.setdefault(name, []).append(node.op_type)
    return found


def _transposed(node: Any) -> bool:
    return any(attribute.name == "transB" and attribute.i for attribute in node.attribute)


def _draw(maker: WeightMaker, role: str, shape: tuple[int, ...]) -> Array:
    match role:
        case "weight":
            return maker.he(shape, int(np.prod(shape[1:])))
        case "linear_weight":
            return maker.he(shape, 2 * int(np.prod(shape[1:])))
        case "matrix":
            return maker.he(shape, 2 * shape[0])
        case "gain" | "variance":
            return maker.around(shape, 1.0)
        case "branch_gain":
            return maker.around(shape, _BRANCH_GAIN)
        case _:
            return maker.normal(shape, 0.05)


def _kept_initializers(graph: Any, roles: dict[str, str]) -> list[Any]:
    """Initialisers that are no parameters (shapes of reshapes) and still used."""
    used = {name for node in graph.node if node.op_type != "ConstantOfShape" for name in node.input}
    return [tensor for tensor in graph.initializer if tensor.name in used and tensor.name not in roles]


def _replace(graph: Any, initializers: list[Any]) -> None:
    nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    used = {name for node in nodes for name in node.input}
    given = {tensor.name for tensor in initializers}
    inputs = [value for value in graph.input if value.name in used and value.name not in given]
    for field, values in (("node", nodes), ("initializer", initializers), ("input", inputs)):
        del getattr(graph, field)[:]
        getattr(graph, field).extend(values)
