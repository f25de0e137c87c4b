"""TVM's converter of TensorFlow Lite operators, mended: values known at import are computed at import."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.importing.known_values import known_value

_TRANSPOSED = "Convolution2DTransposeBias"
_KNOWN_CUSTOM = ("TFLite_Detection_PostProcess", _TRANSPOSED)


def operator_converter(where: str) -> Any:
    """A converter that says where an operator is that it does not know."""
    from tvm.relax.frontend.tflite.tflite_frontend import OperatorConverter, get_tensor_name

    tensor_name: Any = get_tensor_name

    class MendedConverter(OperatorConverter):  # type: ignore[misc]
        """`where` names the model in errors."""

        def check_unsupported_ops(self) -> None:
            self.convert_map[_TRANSPOSED] = self.convert_transposed_with_bias
            for number in range(self.subgraph.OperatorsLength()):
                operator = self.subgraph.Operators(number)
                kind = kind_of(self.model, operator)
                if kind.startswith("custom ") or self.get_op_code_str(operator) not in self.convert_map:
                    output = self.subgraph.Tensors(operator.Outputs(0)).Name().decode()
                    raise ModelError(
                        f"{where}: TVM does not import operator {kind} (with output {output!r}); "
                        "replace it in the model or export with other operators"
                    )

        def get_op_code_str(self, op: Any) -> str:
            """The name under which a converter is found."""
            kind = kind_of(self.model, op)
            return kind if kind == _TRANSPOSED else str(super().get_op_code_str(op))

        def convert_transposed_with_bias(self, op: Any) -> Any:
            """MediaPipe's transposed convolution; its options are three numbers without a schema."""
            from tvm import relax

            data, weights, bias = self.get_input_tensors(op)
            (result,) = self.get_output_tensors(op)
            _, stride_w, stride_h = np.frombuffer(op.CustomOptionsAsNumpy().tobytes()[:12], dtype="<i4")
            value = self.get_tensor_value_or_prefetched(weights).astype(np.float32)
            pads = [
                _transposed_pads(
                    data.tensor.Shape(axis), value.shape[axis], stride, result.tensor.Shape(axis)
                )
                for axis, stride in ((1, int(stride_h)), (2, int(stride_w)))
            ]
            product = relax.op.nn.conv2d_transpose(
                self.get_tensor_expr(data),
                relax.const(np.ascontiguousarray(value.transpose(3, 0, 1, 2))),
                strides=(int(stride_h), int(stride_w)),
                padding=(pads[0][0], pads[1][0], pads[0][1], pads[1][1]),
                data_layout="NHWC",
                kernel_layout="IOHW",
            )
            offset = self.get_tensor_value_or_prefetched(bias).astype(np.float32)
            return relax.op.add(self.bb.normalize(product), relax.const(offset))

        def convert_op_to_relax(self) -> None:
            """Operator by operator; what depends on no input is a value from then on."""
            for number in range(self.subgraph.OperatorsLength()):
                operator = self.subgraph.Operators(number)
                if not self._computed(operator):
                    self._converted(operator)

        def _computed(self, operator: Any) -> bool:
            inputs, outputs = self.get_input_tensors(operator), self.get_output_tensors(operator)
            kind = self.get_op_code_str(operator)
            if kind == "SHAPE":
                value = np.array([int(size) for size in self.get_tensor_shape(inputs[0])])
            elif (
                kind in _SIMPLE and self._is_whole(outputs[0]) and all(self._is_known(one) for one in inputs)
            ):
                value = _SIMPLE[kind](operator, [self.get_tensor_value(one) for one in inputs])
            else:
                return False
            kind_of_number = self.get_tensor_type_as_numpy(outputs[0])
            self.set_prefetched_node(outputs[0].tensor_idx, value.astype(kind_of_number))
            return True

        def _is_whole(self, tensor: Any) -> bool:
            return np.dtype(self.get_tensor_type_as_numpy(tensor)).kind in "iu"

        def _is_known(self, tensor: Any) -> bool:
            return self.is_prefetched(tensor.tensor_idx) or bool(tensor.buffer.DataLength())

        def _converted(self, operator: Any) -> None:
            result = self.convert_map[self.get_op_code_str(operator)](op=operator)
            if result is None:
                return
            result = self.bb.normalize(result)
            outputs = self.get_output_tensors(operator)
            for place, output in enumerate(outputs):
                value = result if len(outputs) == 1 else result[place]
                self.exp_tab.set_expr(tensor_name(self.subgraph, output.tensor_idx), value)

        def get_tensor_value(self, tensor_wrapper: Any, is_sparse: bool = False) -> Any:
            """The value of a tensor; computed when the file has only a rule for it."""
            number = tensor_wrapper.tensor_idx
            if self.is_prefetched(number):
                return self.get_prefetched_node(number)
            if not tensor_wrapper.buffer.DataLength() and self.has_expr(number):
                value = known_value(self.get_expr(number), self.bb)
                if value is not None:
                    return value
            return super().get_tensor_value(tensor_wrapper, is_sparse)

        def convert_expand_dims(self, op: Any) -> Any:
            """TVM's own gives an argument too many."""
            from tvm import relax

            data, place = self.get_input_tensors(op)
            axis = int(np.asarray(self.get_tensor_value(place)).reshape(-1)[0])
            return relax.op.expand_dims(self.get_tensor_expr(data), axis)

        def convert_dequantize(self, op: Any) -> Any:
            """Weights kept in a smaller type become what they stand for at once."""
            (source,) = self.get_input_tensors(op)
            if not source.buffer.DataLength() and not self.is_prefetched(source.tensor_idx):
                return super().convert_dequantize(op)
            (result,) = self.get_output_tensors(op)
            self.set_prefetched_node(result.tensor_idx, dequantised(self, source))
            return None

    return MendedConverter


def _transposed_pads(size: int, kernel: int, stride: int, result: int) -> tuple[int, int]:
    """What is cut off before and after, from the size of the result."""
    cut = (size - 1) * stride + kernel - result
    return cut // 2, cut - cut // 2


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


_SIMPLE: dict[str, Callable[[Any, list[Any]], Any]] = {
    "PACK": _packed,
    "STRIDED_SLICE": _sliced,
    "CAST": lambda operator, values: values[0],
    "NEG": lambda operator, values: -values[0],
    "ADD": lambda operator, values: values[0] + values[1],
    "SUB": lambda operator, values: values[0] - values[1],
    "MUL": lambda operator, values: values[0] * values[1],
}
"""Arithmetic on shapes, as converters of other frameworks leave it in a graph."""


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


def kind_of(model: Any, operator: Any) -> str:
    """The name of an operator; custom ones with the name their maker gave them."""
    from tflite.BuiltinOperator import BuiltinOperator

    code = model.OperatorCodes(operator.OpcodeIndex())
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    if number == BuiltinOperator.CUSTOM:
        custom = str(code.CustomCode().decode())
        return custom if custom in _KNOWN_CUSTOM else f"custom {custom}"
    names = {value: name for name, value in vars(BuiltinOperator).items() if isinstance(value, int)}
    return str(names.get(number, f"number {number}"))
