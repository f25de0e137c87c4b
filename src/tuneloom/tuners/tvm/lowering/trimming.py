"""Ends that are cut off what a convolution computed are not computed: its padding there is shorter.

Speech models with an even window pad both ends alike and drop what is too much. A kernel that computes the
whole and keeps a part of it has loops that no template knows.
"""

from functools import partial
from typing import Any

from tuneloom.compiler.lazy import relax
from tuneloom.compiler.renewing import bindings_of
from tuneloom.compiler.rewriting import (
    BINARY,
    UNARY,
    Lookup,
    Readers,
    bound_of,
    name_of,
    rewritten,
    shape_of,
)

_MAKERS = {"nn.conv1d": "conv1d", "nn.conv2d": "conv2d", "nn.conv3d": "conv3d"}


def ends_trimmed(module: Any) -> Any:
    """The module without slices of convolutions that shorter padding amounts to."""
    bindings = bindings_of(module)
    if not any(name_of(binding.value) == "strided_slice" for binding in bindings):
        return module
    return rewritten(module, partial(_trimmed, Readers(bindings)))


def _trimmed(readers: Readers, builder: Any, cut: Any, made: Lookup) -> Any | None:
    """What a slice amounts to if nobody else reads the convolution before it; None for other expressions."""
    found = _cut(cut)
    if found is None:
        return None
    axis, before, behind = found
    whole, steps = cut.args[0], []
    while (call := _step(whole, axis, readers, made)) is not None:
        steps.append((whole, call))
        whole = call.args[_place(call)]
    convolution = made(whole)
    if name_of(convolution) not in _MAKERS or readers.only(whole) is None:
        return None
    value = _shorter(convolution, axis, before, behind)
    for old, call in reversed(steps if value is not None else ()):
        value, whole = _again(call, whole, builder.emit(value)), old
    return value


def _cut(cut: Any) -> tuple[int, int, int] | None:
    """The axis of a slice, and how much it leaves out before and behind; None if it is not of that kind."""
    shape = shape_of(cut.args[0]) if name_of(cut) == "strided_slice" else None
    if not shape or not all(hasattr(one, "fields") for one in cut.args[1:]):
        return None
    axes, begins, ends, *rest = ([bound_of(one) for one in part.fields] for part in cut.args[1:])
    if len(axes) != 1 or any(step != 1 for strides in rest for step in strides):
        return None
    length = shape[axes[0] % len(shape)]
    begin, end = (min(one + length if one < 0 else one, length) for one in (begins[0], ends[0]))
    return (axes[0] % len(shape), begin, length - end) if 0 <= begin < end else None


def _step(value: Any, axis: int, readers: Readers, made: Lookup) -> Any | None:
    """The elementwise operator behind a value with a single reader, if it is the same all along an axis."""
    call = made(value)
    if readers.only(value) is None or name_of(call) not in UNARY | BINARY:
        return None
    if name_of(call) in UNARY:
        return call
    rank = len(shape_of(value) or ())
    own, other = (shape_of(call.args[n]) for n in (_place(call), 1 - _place(call)))
    if own is None or other is None or own != shape_of(value):
        return None
    at = axis - rank + len(other)
    return call if at < 0 or other[at] == 1 else None


def _place(call: Any) -> int:
    """Which operand of an elementwise operator has the shape of its result."""
    return int(len(call.args) == 2 and shape_of(call.args[0]) != shape_of(call))


def _shorter(convolution: Any, axis: int, before: int, behind: int) -> Any | None:
    """The convolution with less padding; None if that would be less than none."""
    attributes = convolution.attrs
    layout = str(attributes.data_layout)
    pads, strides = ([int(one) for one in getattr(attributes, name)] for name in ("padding", "strides"))
    count = len(strides)
    if layout[:2] != "NC" or str(attributes.out_layout or layout) != layout or axis < 2:
        return None
    for place, less in ((axis - 2, before), (axis - 2 + count, behind)):
        pads[place] -= less * strides[axis - 2]
    if min(pads) < 0:
        return None
    return getattr(relax.op.nn, _MAKERS[name_of(convolution)])(
        *convolution.args,
        strides=strides,
        padding=pads,
        dilation=[int(one) for one in attributes.dilation],
        groups=int(attributes.groups),
        data_layout=layout,
        kernel_layout=str(attributes.kernel_layout),
        out_layout=layout,
        out_dtype=str(attributes.out_dtype) if attributes.out_dtype else None,
    )


def _again(call: Any, old: Any, value: Any) -> Any:
    """A call that reads another value."""
    arguments = [value if one.same_as(old) else one for one in call.args]
    return relax.Call(call.op, arguments, call.attrs, call.ty_args)
