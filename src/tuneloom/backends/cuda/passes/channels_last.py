"""One memory layout for a whole model: channels behind pixels, where tiles of products read them together.

Every convolution is written for that layout between two transpositions, and these are moved through the
operators between convolutions until they meet and vanish. What is left stands at inputs, at outputs, and
before operators that need the old order.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tuneloom.backends.cuda.passes.halves import PRODUCTS
from tuneloom.compiler.rewriting import (
    BINARY,
    UNARY,
    Lookup,
    array_of,
    constant_of,
    dtype_of,
    name_of,
    rewritten,
    shape_of,
)

_FIRST = {3: (0, 2, 1), 4: (0, 3, 1, 2)}
"""By rank: where the old order finds its axes in the new one."""
_LAST = {3: (0, 2, 1), 4: (0, 2, 3, 1)}
_LAYOUTS = {
    "nn.conv1d": ("NCW", "OIW", "NWC", "OWI"),
    "nn.conv2d": ("NCHW", "OIHW", "NHWC", "OHWI"),
    "nn.conv1d_transpose": ("NCW", "IOW", "NWC", "OWI"),
    "nn.conv2d_transpose": ("NCHW", "IOHW", "NHWC", "OHWI"),
}
_POOLS = ("pool_size", "strides", "padding", "dilation", "ceil_mode", "count_include_pad")
_REDUCTIONS = frozenset(("mean", "sum", "max", "min"))


def channels_last(module: Any) -> Any:
    """The module with channels as the last axis between its convolutions."""
    return rewritten(rewritten(module, _turned), _moved)


def gates_apart(module: Any) -> Any:
    """The module with computed values that are broadcast, such as gates of channels, in kernels of their own.

    Fused into the product that computes them, what they are multiplied with would belong to its kernel. Two
    views in between prevent that, and cost nothing where they are read.
    """
    return rewritten(module, _kept_apart)


def _kept_apart(builder: Any, call: Any, made: Lookup) -> Any | None:
    from tvm import relax

    shape = shape_of(call)
    if name_of(call) not in BINARY or shape is None or any(array_of(one) is not None for one in call.args):
        return None
    operands = [_viewed(builder, one, shape, made) for one in call.args]
    same = all(new is old for new, old in zip(operands, call.args, strict=True))
    return None if same else relax.Call(call.op, operands, call.attrs)


def _viewed(builder: Any, value: Any, shape: tuple[int, ...], made: Lookup) -> Any:
    """A computed value that is broadcast to a shape, behind views; any other as it is."""
    from tvm import relax

    own = shape_of(value)
    ones = [axis for axis, extent in enumerate(own or ()) if extent == 1]
    computed = isinstance(made(value), relax.Call) and name_of(made(value)) != "expand_dims"
    if own is None or len(own) != len(shape) or own == shape or not ones or not computed:
        return value
    return builder.emit(relax.op.expand_dims(builder.emit(relax.op.squeeze(value, ones)), ones))


def _turned(builder: Any, call: Any, _made: Lookup) -> Any | None:
    """A convolution in the new layout between transpositions."""
    from tvm import relax

    name = name_of(call)
    old = _LAYOUTS.get(name)
    if old is None or (str(call.attrs.data_layout), str(call.attrs.kernel_layout)) != old[:2]:
        return None
    data, weights = call.args
    rank, layout = len(old[0]), _filters(call, old[3])
    image = builder.emit(relax.op.permute_dims(data, _LAST[rank]))
    filters = _permuted(builder, weights, [old[1].index(axis) for axis in layout])
    make = getattr(relax.op.nn, name.removeprefix("nn."))
    attributes = {one: getattr(call.attrs, one) for one in PRODUCTS[name]}
    attributes |= {"data_layout": old[2], "kernel_layout": layout, "out_layout": old[2]}
    kind = str(call.attrs.out_dtype or "") or dtype_of(call)
    done = builder.emit(make(image, filters, **attributes, out_dtype=kind))
    return relax.op.permute_dims(done, _FIRST[rank])


def _filters(call: Any, layout: str) -> str:
    """The layout of filters; channels of a depthwise convolution, which are read together, come last."""
    shape, groups = shape_of(call.args[1]) or (), int(call.attrs.groups)
    depthwise = groups > 1 and shape[:2] == (groups, 1) and "transpose" not in name_of(call)
    return f"{layout[1:-1]}OI" if depthwise else layout


def _permuted(builder: Any, value: Any, axes: Sequence[int]) -> Any:
    """A transposed tensor; of a constant, the constant."""
    from tvm import relax

    array = array_of(value)
    if array is None:
        return builder.emit(relax.op.permute_dims(value, list(axes)))
    return relax.const(np.ascontiguousarray(array.transpose(axes)), dtype_of(value))


def _moved(builder: Any, call: Any, made: Lookup) -> Any | None:
    name = name_of(call)
    if (
        name in UNARY
        or name == "nn.softmax"
        or name in _REDUCTIONS
        or name.startswith(("nn.max_pool", "nn.avg_pool"))
    ):
        source = _source(call.args[0], made)
        return None if source is None else _BY_NAME.get(name, _unary)(builder, call, source)
    rule: Callable[[Any, Any, Lookup], Any | None] | None = (
        _binary if name in BINARY or name == "where" else _RULES.get(name)
    )
    return None if rule is None else rule(builder, call, made)


def _source(value: Any, made: Lookup) -> Any | None:
    """What a value in the old order is a transposition of; None if it is none."""
    bound = made(value)
    if name_of(bound) != "permute_dims" or bound.attrs.axes is None:
        return None
    axes = tuple(int(axis) for axis in bound.attrs.axes)
    return bound.args[0] if axes == _FIRST.get(len(axes)) else None


def _back(value: Any) -> Any:
    from tvm import relax

    return relax.op.permute_dims(value, _FIRST[len(shape_of(value) or ())])


def _unary(builder: Any, call: Any, source: Any) -> Any:
    from tvm import relax

    return _back(builder.emit(relax.Call(call.op, [source, *call.args[1:]], call.attrs)))


def _softmax(builder: Any, call: Any, source: Any) -> Any:
    from tvm import relax

    axes = _FIRST[len(shape_of(source) or ())]
    return _back(builder.emit(relax.op.nn.softmax(source, axes[int(call.attrs.axis)])))


def _pool(builder: Any, call: Any, source: Any) -> Any | None:
    from tvm import relax

    if str(call.attrs.layout) not in ("NCHW", "NCW"):
        return None
    make = getattr(relax.op.nn, name_of(call).removeprefix("nn."))
    layout = "NHWC" if str(call.attrs.layout) == "NCHW" else "NWC"
    attributes = {name: getattr(call.attrs, name) for name in _POOLS if hasattr(call.attrs, name)}
    return _back(builder.emit(make(source, **attributes, layout=layout, out_layout=layout)))


def _reduction(builder: Any, call: Any, source: Any) -> Any | None:
    """The same along the axes where they are now; without them, what is left has to be in the old order."""
    from tvm import relax

    rank = len(shape_of(source) or ())
    axes = range(rank) if call.attrs.axis is None else [int(axis) % rank for axis in call.attrs.axis]
    left = [_FIRST[rank][axis] for axis in range(rank) if axis not in axes]
    make, keepdims = getattr(relax.op, name_of(call)), bool(call.attrs.keepdims)
    done = make(source, [_FIRST[rank][axis] for axis in axes], keepdims)
    if keepdims:
        return _back(builder.emit(done))
    return done if left == sorted(left) else None


def _binary(builder: Any, call: Any, made: Lookup) -> Any | None:
    """The same on sources, if one operand has one; the others are transposed."""
    from tvm import relax

    rank = len(shape_of(call) or ())
    sources = [_source(one, made) for one in call.args]
    if rank not in _LAST or not any(one is not None for one in sources):
        return None
    operands = [
        _operand(builder, one, rank) if source is None else source
        for one, source in zip(call.args, sources, strict=True)
    ]
    if any(one is None for one in operands):
        return None
    return _back(builder.emit(relax.Call(call.op, operands, call.attrs)))


def _operand(builder: Any, value: Any, rank: int) -> Any | None:
    """A tensor in the new order, with axes of one element in front where it has fewer."""
    from tvm import relax

    shape = shape_of(value)
    if shape is None:
        return None
    if constant_of(value) is not None or not shape:
        return value
    whole = (1,) * (rank - len(shape)) + shape
    array = array_of(value)
    if array is not None:
        return _permuted(builder, relax.const(array.reshape(whole), dtype_of(value)), _LAST[rank])
    wide = value if len(shape) == rank else builder.emit(relax.op.reshape(value, whole))
    return builder.emit(relax.op.permute_dims(wide, _LAST[rank]))


def _joined(builder: Any, call: Any, made: Lookup) -> Any | None:
    """Tensors joined along an axis, of which most are transposed."""
    from tvm import relax

    fields = getattr(call.args[0], "fields", None) or getattr(made(call.args[0]), "fields", None)
    rank = len(shape_of(call) or ())
    if fields is None or rank not in _LAST or call.attrs.axis is None:
        return None
    sources = [_source(one, made) for one in fields]
    if 2 * sum(one is not None for one in sources) < len(sources):
        return None
    operands = [
        _permuted(builder, one, _LAST[rank]) if source is None else source
        for one, source in zip(fields, sources, strict=True)
    ]
    return _back(builder.emit(relax.op.concat(operands, _FIRST[rank][int(call.attrs.axis)])))


def _resized(builder: Any, call: Any, made: Lookup) -> Any | None:
    from tvm import relax

    source = _source(call.args[0], made)
    if source is None or str(call.attrs.layout) != "NCHW":
        return None
    names = ("method", "coordinate_transformation_mode", "rounding_method", "cubic_alpha", "cubic_exclude")
    attributes = {name: getattr(call.attrs, name) for name in (*names, "extrapolation_value", "out_dtype")}
    attributes["roi"] = tuple(float(getattr(one, "value", one)) for one in call.attrs.roi)
    return _back(builder.emit(relax.op.image.resize2d(source, call.args[1], **attributes, layout="NHWC")))


def _reshaped(builder: Any, call: Any, made: Lookup) -> Any | None:
    """A reshape that does not care about the order, or only joins pixels."""
    from tvm import relax

    source, shape = _source(call.args[0], made), shape_of(call)
    if source is None or shape is None:
        return None
    extents = shape_of(source) or ()
    if extents[-1] == 1 or all(extent == 1 for extent in extents[1:-1]):
        return relax.op.reshape(source, shape)
    if len(shape) == 3 and len(extents) == 4 and shape[:2] == (extents[0], extents[3]):
        return _back(builder.emit(relax.op.reshape(source, (shape[0], shape[2], shape[1]))))
    return None


def _turned_back(_builder: Any, call: Any, made: Lookup) -> Any | None:
    """Two transpositions that undo each other."""
    source = _source(call.args[0], made)
    axes = None if call.attrs.axes is None else tuple(int(axis) for axis in call.attrs.axes)
    return source if source is not None and axes is not None and axes == _LAST.get(len(axes)) else None


_BY_NAME: dict[str, Callable[[Any, Any, Any], Any | None]] = {
    "nn.softmax": _softmax,
    **dict.fromkeys(_REDUCTIONS, _reduction),
    **dict.fromkeys(("nn.max_pool1d", "nn.max_pool2d", "nn.avg_pool1d", "nn.avg_pool2d"), _pool),
}
_RULES: dict[str, Callable[[Any, Any, Lookup], Any | None]] = {
    "permute_dims": _turned_back,
    "concat": _joined,
    "image.resize2d": _resized,
    "reshape": _reshaped,
    "flatten": _reshaped,
}
