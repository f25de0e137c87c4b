"""Operators on images that have a blocked form of their own: transposed convolution, resize, PReLU."""

from typing import Any

from tuneloom.backends.cpu.layouts.expressions import constant
from tuneloom.backends.cpu.layouts.kernels import compute, transposed
from tuneloom.backends.cpu.layouts.kernels.transposed import Transposed
from tuneloom.backends.cpu.layouts.rewriter import Rewriter, Rule
from tuneloom.backends.cpu.layouts.shapes.values import Array, pack_weight
from tuneloom.compiler.lazy import relax, topi
from tuneloom.compiler.rewriting import shape_of


def _conv2d_transpose(rewriter: Rewriter, var: Any, call: Any) -> bool:
    attrs, weight, shape = call.attrs, constant(call.args[1]), shape_of(var)
    layouts = (str(attrs.data_layout), str(attrs.kernel_layout))
    if weight is None or shape is None or layouts != ("NCHW", "IOHW") or str(var.ty.dtype) != "float32":
        return False
    dilated = any(int(size) != 1 for size in attrs.dilation)
    if int(attrs.groups) != 1 or dilated:
        return False
    top, left, bottom, right = (int(size) for size in attrs.padding)
    form = Transposed(
        kernel=(weight.shape[2], weight.shape[3]),
        stride=(int(attrs.strides[0]), int(attrs.strides[1])),
        padding=(top, left, bottom, right),
    )
    emit = _emit_woven if weight.shape[1] < rewriter.lanes // 2 else _emit_transposed
    emit(rewriter, var, call, form, weight)
    return True


def _emit_transposed(rewriter: Rewriter, var: Any, call: Any, form: Transposed, weight: Array) -> None:
    packed = relax.const(form.pack(weight, rewriter.block))
    data = rewriter.blocked(rewriter.value(call.args[0]))
    options = {"form": form, "size": _size(var)}
    phases = rewriter.kernel(transposed.conv2d_transposed, [data, packed], "conv2d_transposed", **options)
    rewriter.emit_kernel(var, transposed.interleaved, [phases], "interleaved", **options)


def _emit_woven(rewriter: Rewriter, var: Any, call: Any, form: Transposed, weight: Array) -> None:
    """Few outputs would leave most of a vector empty: all their phases go into it."""
    packed = relax.const(pack_weight(form.as_ordinary(weight), rewriter.block))
    data, size = rewriter.value(call.args[0]), _size(var)
    window = form.window((data.shape[2], data.shape[3]), size)
    phases = rewriter.kernel(compute.conv2d, [rewriter.blocked(data), packed], "conv2d", window=window)
    options = {"form": form, "size": size, "channels": weight.shape[1]}
    rewriter.emit_plain(var, transposed.woven, [phases], "woven", **options)


def _size(var: Any) -> tuple[int, int]:
    """The rows and columns of an image whose extents are known."""
    _, _, rows, cols = shape_of(var) or (0, 0, 0, 0)
    return rows, cols


def _resize2d(rewriter: Rewriter, var: Any, call: Any) -> bool:
    attrs, shape = call.attrs, shape_of(var)
    data = rewriter.value(call.args[0])
    method = str(attrs.method)
    if shape is None or str(attrs.layout) != "NCHW" or not rewriter.is_blocked(data):
        return False
    if method not in ("linear", "nearest_neighbor") or str(var.ty.dtype) != "float32":
        return False
    rewriter.emit_kernel(
        var,
        _resized,
        [rewriter.blocked(data)],
        "resize2d",
        size=(shape[2], shape[3]),
        lanes=rewriter.block,
        method=method,
        mode=str(attrs.coordinate_transformation_mode),
        rounding=str(attrs.rounding_method),
    )
    return True


def _resized(data: Any, size: tuple[int, int], lanes: int, method: str, mode: str, rounding: str) -> Any:
    return topi.image.resize2d(
        data,
        (0.0, 0.0, 0.0, 0.0),
        size,
        layout=f"NCHW{lanes}c",
        method=method,
        coordinate_transformation_mode=mode,
        rounding_method=rounding,
    )


def _prelu(rewriter: Rewriter, var: Any, call: Any) -> bool:
    data, slope = rewriter.value(call.args[0]), constant(call.args[1])
    fits = len(data.shape) in (3, 4) and slope is not None and slope.size in (1, data.shape[1])
    if not fits or slope is None or int(call.attrs.axis) != 1 or not rewriter.is_blocked(data):
        return False
    given, zero = rewriter.blocked(data), relax.const(0.0, "float32")
    slopes = rewriter.channel_constant(slope.reshape(-1).repeat(data.shape[1] // slope.size), 0.0)
    below = rewriter.emit(relax.op.multiply(rewriter.emit(relax.op.minimum(given, zero)), slopes))
    rewriter.emit_blocked(var, relax.op.add(rewriter.emit(relax.op.maximum(given, zero)), below))
    return True


RULES: dict[str, Rule] = {
    "relax.nn.conv2d_transpose": _conv2d_transpose,
    "relax.image.resize2d": _resize2d,
    "relax.nn.prelu": _prelu,
}
