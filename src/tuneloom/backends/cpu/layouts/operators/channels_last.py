"""Convolutions of images with their channels last, as in TensorFlow Lite: weights are packed into panels."""

from dataclasses import replace
from typing import Any

from tuneloom.backends.cpu.layouts.expressions import constant
from tuneloom.backends.cpu.layouts.kernels import compute
from tuneloom.backends.cpu.layouts.operators.products import with_constant
from tuneloom.backends.cpu.layouts.rewriter import Rewriter, Rule
from tuneloom.backends.cpu.layouts.shapes import matrices
from tuneloom.backends.cpu.layouts.shapes.values import pack_window
from tuneloom.backends.cpu.layouts.shapes.windows import Window, window_of
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.rewriting import shape_of


def _conv2d(rewriter: Rewriter, var: Any, call: Any) -> bool:
    attrs, weight = call.attrs, constant(call.args[1])
    layouts = (str(attrs.data_layout), str(var.ty.dtype))
    if weight is None or shape_of(call.args[0]) is None or layouts != ("NHWC", "float32"):
        return False
    data, window = _with_padding(rewriter, call.args[0], window_of(attrs, weight.shape[:2]))
    if int(attrs.groups) != 1:
        return _in_groups(rewriter, var, call, data, window)
    if str(attrs.kernel_layout) != "HWIO" or weight.shape[3] < rewriter.lanes or rewriter.pairs:
        return False
    shape = shape_of(data) or ()
    if window == Window(kernel=(1, 1)):
        with_constant(rewriter, var, data, weight[0, 0], shape)
        return True
    rows, columns = window.output_size(shape[1], shape[2])
    panel = matrices.panel_width(shape[0] * rows * columns, weight.shape[3], rewriter.lanes)
    arguments = [rewriter.plain(rewriter.value(data)), relax.const(pack_window(weight, panel))]
    options = {"window": window, "width": weight.shape[3]}
    rewriter.emit_plain(var, compute.conv2d_channels_last, arguments, "conv2d", **options)
    return True


def _in_groups(rewriter: Rewriter, var: Any, call: Any, data: Any, window: Window) -> bool:
    """The same operator, with zeros around its image as its own padding."""
    if data is call.args[0]:
        return False
    names = ("strides", "dilation", "groups", "data_layout", "kernel_layout", "out_layout", "out_dtype")
    options = {name: getattr(call.attrs, name) for name in names}
    made = relax.op.nn.conv2d(
        rewriter.plain(rewriter.value(data)), call.args[1], padding=list(window.padding), **options
    )
    rewriter.bind_plain(var, rewriter.emit(made))
    return True


def _with_padding(rewriter: Rewriter, data: Any, window: Window) -> tuple[Any, Window]:
    """What a convolution reads, before zeros were put around it, and the window that puts them there."""
    call = rewriter.made_by(data, "nn.pad")
    if call is None or not _is_of_zeros(call):
        return data, window
    _, _, above, below, before, behind, _, _ = (int(size) for size in call.attrs.pad_width)
    top, left, bottom, right = window.padding
    grown = (top + above, left + before, bottom + below, right + behind)
    return call.args[0], replace(window, padding=grown)


def _is_of_zeros(pad: Any) -> bool:
    """Whether a padding puts zeros around images, and nothing else."""
    widths = [int(size) for size in pad.attrs.pad_width]
    around = len(widths) == 8 and not any((*widths[:2], *widths[6:])) and min(widths) >= 0
    return around and str(pad.attrs.pad_mode) == "constant" and float(pad.attrs.pad_value) == 0.0


RULES: dict[str, Rule] = {"relax.nn.conv2d": _conv2d}
