"""Operators of TensorFlow Lite that TVM's converter lacks or gets wrong."""

import math
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.spectra import spectrum

TRANSPOSED = "Convolution2DTransposeBias"
KNOWN_CUSTOM = ("TFLite_Detection_PostProcess", TRANSPOSED)


class MendedOperators:
    """Part of a converter of TVM: these methods come before its own."""

    def convert_expand_dims(self: Any, op: Any) -> Any:
        """TVM's own gives an argument too many."""
        data, place = self.get_input_tensors(op)
        axis = int(np.asarray(self.get_tensor_value(place)).reshape(-1)[0])
        return relax.op.expand_dims(self.get_tensor_expr(data), axis)

    def convert_transposed_with_bias(self: Any, op: Any) -> Any:
        """MediaPipe's transposed convolution; its options are three numbers without a schema."""
        data, weights, bias = self.get_input_tensors(op)
        (result,) = self.get_output_tensors(op)
        _, stride_w, stride_h = map(int, np.frombuffer(op.CustomOptionsAsNumpy().tobytes()[:12], dtype="<i4"))
        value = self.get_tensor_value_or_prefetched(weights).astype(np.float32)
        pads = [
            _transposed_pads(data.tensor.Shape(axis), value.shape[axis], stride, result.tensor.Shape(axis))
            for axis, stride in ((1, stride_h), (2, stride_w))
        ]
        product = relax.op.nn.conv2d_transpose(
            self.get_tensor_expr(data),
            relax.const(np.ascontiguousarray(value.transpose(3, 0, 1, 2))),
            strides=(stride_h, stride_w),
            padding=(pads[0][0], pads[1][0], pads[0][1], pads[1][1]),
            data_layout="NHWC",
            kernel_layout="IOHW",
        )
        offset = self.get_tensor_value_or_prefetched(bias).astype(np.float32)
        return relax.op.add(self.bb.normalize(product), relax.const(offset))

    def convert_gather(self: Any, op: Any) -> Any:
        """TVM's own looks at every element of the result, and forgets batches."""
        from tflite.GatherOptions import GatherOptions

        options = self._get_builtin_options(op, GatherOptions)
        data, places = self.get_input_tensors(op)
        if options.BatchDims():
            raise NotImplementedError("GATHER in batches")
        shape = self.get_tensor_shape(data)
        axis = options.Axis() % len(shape)
        if self.has_expr(places.tensor_idx):
            indices = relax.op.astype(self.get_expr(places.tensor_idx), "int32")
            return relax.op.take(self.get_tensor_expr(data), indices, axis=axis, mode="clip")
        known = self.get_tensor_value(places)
        if known.size and not 0 <= known.min() <= known.max() < shape[axis]:
            raise NotImplementedError("GATHER from outside of its data")
        return relax.op.take(
            self.get_tensor_expr(data), relax.const(known.astype(np.int32)), axis=axis, mode="fast"
        )

    def convert_squeeze(self: Any, op: Any) -> Any:
        """TVM's own counts axes from the end of what it makes of a complex number, a pair."""
        from tflite.SqueezeOptions import SqueezeOptions

        options = self._get_builtin_options(op, SqueezeOptions)
        (data,) = self.get_input_tensors(op)
        shape = self.get_tensor_shape(data)
        named = [options.SqueezeDims(place) % len(shape) for place in range(options.SqueezeDimsLength())]
        axes = named or [axis for axis, size in enumerate(shape) if size == 1]
        return relax.op.squeeze(self.get_tensor_expr(data), axes)

    def convert_cast(self: Any, op: Any) -> Any:
        """Of a complex number that becomes a real one, the real part is left."""
        (data,), (result,) = self.get_input_tensors(op), self.get_output_tensors(op)
        was, becomes = (self._is_tflite_complex64_type(one.tensor.Type()) for one in (data, result))
        if not was or becomes:
            return super().convert_cast(op)  # type: ignore[misc]
        pairs, last = self.get_tensor_expr(data), len(self.get_tensor_shape(data))
        real = self.bb.emit(relax.op.strided_slice(pairs, axes=[last], begin=[0], end=[1]))
        kind = self.get_tensor_type_str(result.tensor.Type())
        return relax.op.astype(self.bb.emit(relax.op.squeeze(real, [last])), kind)

    def convert_rfft2d(self: Any, op: Any) -> Any:
        """Lines are transformed by products: TVM's own writes out every step, which takes it minutes."""
        data, lengths = self.get_input_tensors(op)
        height, width = map(int, self.get_tensor_value_or_prefetched(lengths))
        *outer, rows, columns = map(int, self.get_tensor_shape(data))
        if (height, rows) != (1, 1) or columns != width:
            raise NotImplementedError("RFFT2D of more than one line, or of one that is cut or filled up")
        count = math.prod(outer)
        lines = self.bb.emit(relax.op.reshape(self.get_tensor_expr(data), (count, width)))
        return relax.op.reshape(spectrum(self.bb, lines, count, width), (*outer, 1, width // 2 + 1, 2))


def _transposed_pads(size: int, kernel: int, stride: int, result: int) -> tuple[int, int]:
    """What is cut off before and after, from the size of the result."""
    cut = (size - 1) * stride + kernel - result
    return cut // 2, cut - cut // 2


def kind_of(model: Any, operator: Any) -> str:
    """The name of an operator; custom ones with the name their maker gave them."""
    from tflite.BuiltinOperator import BuiltinOperator

    code = model.OperatorCodes(operator.OpcodeIndex())
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    if number == BuiltinOperator.CUSTOM:
        custom = str(code.CustomCode().decode())
        return custom if custom in KNOWN_CUSTOM else f"custom {custom}"
    names = {value: name for name, value in vars(BuiltinOperator).items() if isinstance(value, int)}
    return str(names.get(number, f"number {number}"))
