"""Operators of TensorFlow Lite that TVM's converter lacks or gets wrong."""

from typing import Any

import numpy as np

TRANSPOSED = "Convolution2DTransposeBias"
KNOWN_CUSTOM = ("TFLite_Detection_PostProcess", TRANSPOSED)


class MendedOperators:
    """Part of a converter of TVM: these methods come before its own."""

    def convert_expand_dims(self: Any, op: Any) -> Any:
        """TVM's own gives an argument too many."""
        from tvm import relax

        data, place = self.get_input_tensors(op)
        axis = int(np.asarray(self.get_tensor_value(place)).reshape(-1)[0])
        return relax.op.expand_dims(self.get_tensor_expr(data), axis)

    def convert_transposed_with_bias(self: Any, op: Any) -> Any:
        """MediaPipe's transposed convolution; its options are three numbers without a schema."""
        from tvm import relax

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
