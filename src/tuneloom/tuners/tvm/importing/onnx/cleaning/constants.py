"""Values that are known before the model runs, and operators computed on them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import onnx

_MOST_BYTES = 1 << 28
"""A larger result is left to be computed when the model runs: a file could ask for any size."""

_BY_CHANCE = frozenset(
    ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounded:
    """What a known value was before it was dequantised: whole numbers, less their zero point, and their step.

    The step is one number, or one for each place along an axis, shaped so that it broadcasts.
    """

    whole: Any
    step: Any

    @property
    def value(self) -> Any:
        """What it stands for."""
        return (self.whole.astype(np.float32) * self.step).astype(np.float32)

    def turned(self, axes: Sequence[int] | None) -> "Rounded":
        """The same for the transposed value."""
        step = self.step if self.step.size == 1 else np.transpose(self.step, axes)
        return Rounded(whole=np.transpose(self.whole, axes), step=step)


class Constants:
    """Known values by name; tensors of the file are read when they are first needed."""

    def __init__(self) -> None:
        self._tensors: dict[str, Any] = {}
        self._arrays: dict[str, Any] = {}
        self._rounded: dict[str, Rounded] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._arrays or name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter({**self._tensors, **self._arrays})

    def keep_tensor(self, name: str, tensor: Any) -> None:
        """Take an initialiser as the file has it."""
        self._tensors[name] = tensor

    def keep(self, name: str, value: Any) -> None:
        """Take a computed value."""
        self._arrays[name] = np.asarray(value)

    def array(self, name: str) -> Any:
        """The value as an array."""
        if name not in self._arrays:
            self._arrays[name] = onnx.numpy_helper.to_array(self._tensors[name])
        return self._arrays[name]

    def tensor(self, name: str) -> Any:
        """The value as an initialiser under this name."""
        if name in self._tensors:
            tensor = onnx.TensorProto()
            tensor.CopyFrom(self._tensors[name])
            tensor.name = name
            return tensor
        return onnx.numpy_helper.from_array(np.asarray(self._arrays[name], order="C"), name)

    def keep_rounded(self, node: Any) -> None:
        """Remember what whole numbers the computed result of a node stands for, if it does."""
        attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        found = None
        if node.op_type == "DequantizeLinear" and not attributes.get("block_size", 0):
            found = self._dequantised(node, int(attributes.get("axis", 1)))
        elif node.op_type == "Transpose" and node.input[0] in self._rounded:
            found = self._rounded[node.input[0]].turned(attributes.get("perm"))
        if found is not None:
            self._rounded[node.output[0]] = found

    def rounded(self, name: str) -> Rounded | None:
        """The whole numbers that a value stands for, if it was computed from such."""
        return self._rounded.get(name)

    def _dequantised(self, node: Any, axis: int) -> Rounded | None:
        whole, step = self.array(node.input[0]), self.array(node.input[1])
        if whole.dtype.kind not in "iu" or whole.dtype.itemsize > 4 or step.dtype != np.float32:
            return None
        zero = self.array(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros((), np.int32)
        along = [-1 if place == axis % max(whole.ndim, 1) else 1 for place in range(whole.ndim)]
        step, zero = (one.reshape(along if one.size > 1 else ()) for one in (step, zero))
        return Rounded(whole=whole.astype(np.int32) - zero.astype(np.int32), step=step)

    def type_of(self, name: str) -> Any:
        """The type of the value."""
        tensor = self._tensors[name] if name in self._tensors else self.tensor(name)
        return onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))


def may_compute(node: Any, types: Sequence[Any]) -> bool:
    """Whether a node's result is the same every time and small enough to be kept."""
    if node.op_type in _BY_CHANCE or any(a.HasField("g") or a.graphs for a in node.attribute):
        return False
    return all(_bytes(one) <= _MOST_BYTES for one in types)


def compute(node: Any, constants: Constants, opsets: Sequence[Any]) -> list[Any] | None:
    """The outputs of a node whose inputs are all known; None when they can't be computed here."""
    from onnx.reference import ReferenceEvaluator

    rounded = constants.rounded(node.output[0])
    if rounded is not None:
        return [rounded.value]  # ONNX's own evaluator knows the newest versions of the operator only
    names = list(dict.fromkeys(name for name in node.input if name))
    values = {name: constants.array(name) for name in names}
    unknown = onnx.TypeProto()
    inputs = [onnx.helper.make_value_info(name, constants.type_of(name)) for name in names]
    outputs = [onnx.helper.make_value_info(name, unknown) for name in node.output if name]
    graph = onnx.helper.make_graph([node], "constant", inputs, outputs)
    model = onnx.helper.make_model(graph, opset_imports=list(opsets))
    try:
        with np.errstate(all="ignore"):
            found = dict(
                zip([o.name for o in outputs], ReferenceEvaluator(model).run(None, values), strict=True)
            )
    except Exception:
        return None
    results = [found.get(name) for name in node.output]
    return None if any(isinstance(one, (list, dict)) for one in results) else results


def _bytes(kind: Any) -> int:
    """How much memory a value of this type takes; far too much when nobody knows."""
    shape = static_shape(kind)
    if shape is None:
        return _MOST_BYTES if kind is None else 1 << 20
    item = onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type).itemsize
    return math.prod(shape) * int(item)


def static_shape(kind: Any) -> tuple[int, ...] | None:
    """The shape of a tensor type as numbers; None unless all of it is known."""
    if kind is None or not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    dims = list(kind.tensor_type.shape.dim)
    if any(not dim.HasField("dim_value") or dim.dim_value < 0 for dim in dims):
        return None
    return tuple(int(dim.dim_value) for dim in dims)
