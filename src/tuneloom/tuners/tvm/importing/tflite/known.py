"""Values of a TensorFlow Lite graph that depend on no input: computed at import."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tuneloom.tuners.tvm.importing.tflite.known_values import known_value

Simple = Callable[[Any, list[Any]], Any]
"""Computes the outputs of an operator from its inputs: one array, or a list of them."""


class KnownValues:
    """Part of a converter of TVM: what is known already is a value from then on, not an operator."""

    def _computed(self: Any, operator: Any) -> bool:
        inputs, outputs = self.get_input_tensors(operator), self.get_output_tensors(operator)
        kind = self.get_op_code_str(operator)
        if kind == "SHAPE":
            values: Any = np.array(self.get_tensor_shape(inputs[0]))
        elif kind in SIMPLE and self._is_whole(outputs[0]) and all(self._is_known(one) for one in inputs):
            values = SIMPLE[kind](operator, [self.get_tensor_value(one) for one in inputs])
        else:
            return False
        for output, value in zip(outputs, values if isinstance(values, list) else [values], strict=True):
            kind_of_number = self.get_tensor_type_as_numpy(output)
            self.set_prefetched_node(output.tensor_idx, np.asarray(value).astype(kind_of_number))
        return True

    def get_tensor_shape(self: Any, tensor_wrapper: Any) -> Any:
        """The shape of a tensor as it is computed; files have ones where a shape was open."""
        if self.has_expr(tensor_wrapper.tensor_idx):
            kind = getattr(self.get_expr(tensor_wrapper.tensor_idx), "ty", None)
            extents = getattr(getattr(kind, "shape", None), "values", None)
            if extents is not None and all(hasattr(extent, "value") for extent in extents):
                sizes = [int(extent) for extent in extents]
                pairs = self._is_tflite_complex64_type(tensor_wrapper.tensor.Type())
                return np.array(sizes[:-1] if pairs else sizes, np.int32)
        return super().get_tensor_shape(tensor_wrapper)  # type: ignore[misc]

    def _is_whole(self: Any, tensor: Any) -> bool:
        return np.dtype(self.get_tensor_type_as_numpy(tensor)).kind in "iub"

    def _is_known(self: Any, tensor: Any) -> bool:
        stored = bool(tensor.buffer.DataLength()) or 0 in _declared_shape(tensor)
        return stored or self.is_prefetched(tensor.tensor_idx)

    def get_tensor_value(self: Any, tensor_wrapper: Any, is_sparse: bool = False) -> Any:
        """The value of a tensor; computed when the file has only a rule for it."""
        number = tensor_wrapper.tensor_idx
        if self.is_prefetched(number):
            return self.get_prefetched_node(number)
        if 0 in _declared_shape(tensor_wrapper):
            return np.zeros(_declared_shape(tensor_wrapper), self.get_tensor_type_as_numpy(tensor_wrapper))
        if not tensor_wrapper.buffer.DataLength() and self.has_expr(number):
            value = known_value(self.get_expr(number), self.bb)
            if value is not None:
                return value
        return super().get_tensor_value(tensor_wrapper, is_sparse)  # type: ignore[misc]

    def convert_dequantize(self: Any, op: Any) -> Any:
        """Weights kept in a smaller type become what they stand for at once."""
        (source,) = self.get_input_tensors(op)
        if not source.buffer.DataLength() and not self.is_prefetched(source.tensor_idx):
            return super().convert_dequantize(op)  # type: ignore[misc]
        (result,) = self.get_output_tensors(op)
        self.set_prefetched_node(result.tensor_idx, dequantised(self, source))
        return None


def _declared_shape(tensor: Any) -> list[int]:
    """The shape in the file; a tensor without elements, such as the shape of a number, is never stored."""
    return [int(tensor.tensor.Shape(axis)) for axis in range(tensor.tensor.ShapeLength())]


def _packed(operator: Any, values: list[Any]) -> Any:
    from tflite.PackOptions import PackOptions

    options = _options(operator, PackOptions())
    return np.stack(values, axis=options.Axis())


def _sliced(operator: Any, values: list[Any]) -> Any:
    """A strided slice; of the masks those for open ends and for single elements are used on shapes."""
    from tflite.StridedSliceOptions import StridedSliceOptions

    options = _options(operator, StridedSliceOptions())
    data, begins, ends, steps = values
    places: list[Any] = []
    for axis, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        if options.ShrinkAxisMask() >> axis & 1:
            places.append(int(begin))
        else:
            first = None if options.BeginMask() >> axis & 1 else int(begin)
            last = None if options.EndMask() >> axis & 1 else int(end)
            places.append(slice(first, last, int(step)))
    return np.asarray(data[tuple(places)])


def _split(operator: Any, values: list[Any]) -> Any:
    data, sizes, axis = values
    ends = np.cumsum(np.where(sizes < 0, data.shape[int(axis)] - sizes[sizes >= 0].sum(), sizes))
    return list(np.split(data, ends[:-1], axis=int(axis)))


def _joined(operator: Any, values: list[Any]) -> Any:
    from tflite.ConcatenationOptions import ConcatenationOptions

    return np.concatenate(values, axis=_options(operator, ConcatenationOptions()).Axis())


def _gathered(operator: Any, values: list[Any]) -> Any:
    from tflite.GatherOptions import GatherOptions

    return np.take(values[0], values[1], axis=_options(operator, GatherOptions()).Axis())


def _reduced(reduce: Any) -> Simple:
    def compute(operator: Any, values: list[Any]) -> Any:
        from tflite.ReducerOptions import ReducerOptions

        axes = tuple(np.asarray(values[1]).reshape(-1).tolist())
        return reduce(values[0], axis=axes, keepdims=_options(operator, ReducerOptions()).KeepDims())

    return compute


def _two(compute: Any) -> Simple:
    return lambda operator, values: compute(values[0], values[1])


SIMPLE: dict[str, Simple] = {
    "PACK": _packed,
    "STRIDED_SLICE": _sliced,
    "SPLIT_V": _split,
    "CONCATENATION": _joined,
    "GATHER": _gathered,
    "REDUCE_PROD": _reduced(np.prod),
    "SUM": _reduced(np.sum),
    "RANGE": lambda operator, values: np.arange(*(one.item() for one in values)),
    "CAST": lambda operator, values: values[0],
    "NEG": lambda operator, values: -values[0],
    "RESHAPE": _two(np.reshape),
    "ADD": _two(np.add),
    "SUB": _two(np.subtract),
    "MUL": _two(np.multiply),
    "FLOOR_DIV": _two(np.floor_divide),
    "FLOOR_MOD": _two(np.mod),
    "MAXIMUM": _two(np.maximum),
    "MINIMUM": _two(np.minimum),
    "LESS": _two(np.less),
    "LESS_EQUAL": _two(np.less_equal),
    "GREATER": _two(np.greater),
    "GREATER_EQUAL": _two(np.greater_equal),
    "EQUAL": _two(np.equal),
    "NOT_EQUAL": _two(np.not_equal),
    "LOGICAL_AND": _two(np.logical_and),
    "LOGICAL_OR": _two(np.logical_or),
    "LOGICAL_NOT": lambda operator, values: np.logical_not(values[0]),
}
"""Arithmetic on shapes and on counters of loops, as converters of other frameworks leave it in a graph."""


def _options(operator: Any, options: Any) -> Any:
    table = operator.BuiltinOptions()
    options.Init(table.Bytes, table.Pos)
    return options


def dequantised(converter: Any, source: Any) -> Any:
    """A known tensor in single precision."""
    value = converter.get_tensor_value_or_prefetched(source)
    if value.dtype.kind == "f":
        return value.astype(np.float32)
    quantisation = source.tensor.Quantization()
    scale, zero = quantisation.ScaleAsNumpy(), quantisation.ZeroPointAsNumpy()
    if scale.size > 1:
        axis = [1] * value.ndim
        axis[quantisation.QuantizedDimension()] = scale.size
        scale, zero = scale.reshape(axis), zero.reshape(axis)
    return ((value.astype(np.int64) - zero) * scale).astype(np.float32)
