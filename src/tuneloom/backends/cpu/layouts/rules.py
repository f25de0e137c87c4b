"""How each operator is rewritten for blocked tensors; one short rule an operator.

A rule returns False when it does not apply; the operator is then kept as it is.
"""

from typing import Any

import numpy as np

from tuneloom.backends.cpu.layouts.expressions import constant
from tuneloom.backends.cpu.layouts.forms import VOLUME
from tuneloom.backends.cpu.layouts.kernels import compute
from tuneloom.backends.cpu.layouts.operators import (
    activations,
    along_lines,
    attending,
    channels_last,
    images,
    products,
    reducing,
    rounding,
    scattering,
    two_wholes,
    volumes,
    wholes,
)
from tuneloom.backends.cpu.layouts.rewriter import Rewriter, Rule
from tuneloom.backends.cpu.layouts.shapes.values import Array, OpenConcat, OpenConv, Value
from tuneloom.backends.cpu.layouts.shapes.windows import window_of
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.rewriting import shape_of

_RANKS = (3, 4, VOLUME)
"""How many axes tensors have whose channels may be blocked: lines, images, volumes."""


def _conv2d(rewriter: Rewriter, var: Any, call: Any) -> bool:
    attrs, weight = call.attrs, constant(call.args[1])
    layouts = (str(attrs.data_layout), str(attrs.kernel_layout))
    shape = shape_of(var)
    known = layouts in (("NCHW", "OIHW"), ("NCW", "OIW"))
    if weight is None or shape is None or not known or str(var.ty.dtype) != "float32":
        return False
    if weight.shape[0] < rewriter.lanes // 2:
        return False
    if weight.ndim == 3:
        weight = weight[:, :, None, :]  # a line is an image of one row
    rewriter.bind(
        var,
        OpenConv(
            shape=shape,
            data=rewriter.value(call.args[0]),
            weight=weight,
            window=window_of(attrs, weight.shape[2:]),
            groups=int(attrs.groups),
        ),
    )
    return True


def _batch_norm(rewriter: Rewriter, var: Any, call: Any) -> bool:
    values = [constant(argument) for argument in call.args[1:5]]
    if int(call.attrs.axis) != 1 or any(value is None for value in values):
        return False
    gamma, beta, mean, variance = (np.asarray(value) for value in values)
    scale = (gamma / np.sqrt(variance + float(call.attrs.epsilon))).astype(np.float32)
    shift = (beta - mean * scale).astype(np.float32)
    data = rewriter.value(call.args[0])
    if isinstance(data, OpenConv) and rewriter.read_once(call.args[0]):
        data.scale(scale)
        data.shift(shift)
        rewriter.bind_tuple(var, [data])
        return True
    if len(data.shape) not in _RANKS or not rewriter.is_blocked(data):
        return False
    rewriter.bind_tuple(var, [rewriter.scaled(data, scale, shift)])
    return True


def _tuple_item(rewriter: Rewriter, var: Any, item: Any) -> bool:
    parts = rewriter.tuples.get(item.tuple_value)
    if parts is None:
        return False
    if int(item.index) < len(parts):
        rewriter.bind(var, parts[int(item.index)])
    return True


def _dropout(rewriter: Rewriter, var: Any, call: Any) -> bool:
    rewriter.bind_tuple(var, [rewriter.value(call.args[0])])
    return True


def _binary(rewriter: Rewriter, var: Any, call: Any) -> bool:
    sides = [rewriter.value(argument) for argument in call.args]
    shape = shape_of(var)
    if shape is None or len(shape) not in _RANKS or not any(rewriter.is_blocked(side) for side in sides):
        return False
    if _folded(rewriter, var, call, sides, shape):
        return True
    fill = 1.0 if call.op.name == "relax.divide" else 0.0
    arguments = [_operand(rewriter, a, s, shape, fill) for a, s in zip(call.args, sides, strict=True)]
    if any(argument is None for argument in arguments):
        return False
    rewriter.emit_blocked(var, rewriter.with_args(call, arguments))
    return True


def _folded(rewriter: Rewriter, var: Any, call: Any, sides: list[Value], shape: tuple[int, ...]) -> bool:
    """Scales and biases per channel go into the convolution before them."""
    conv, factor = sides[0], _per_channel(call.args[1], shape)
    if not isinstance(conv, OpenConv) or factor is None or not rewriter.read_once(call.args[0]):
        return False
    match call.op.name:
        case "relax.add":
            conv.shift(factor)
        case "relax.subtract":
            conv.shift(-factor)
        case "relax.multiply":
            conv.scale(factor)
        case "relax.divide":
            conv.scale(1.0 / factor)
        case _:
            return False
    rewriter.bind(var, conv)
    return True


def _operand(rewriter: Rewriter, argument: Any, side: Value, shape: tuple[int, ...], fill: float) -> Any:
    values = _per_channel(argument, shape)
    if values is not None:
        return rewriter.channel_constant(values, fill)
    return rewriter.blocked(side) if side.shape == shape else None


def _per_channel(argument: Any, shape: tuple[int, ...]) -> Array | None:
    """A constant with one value a channel, or one for all."""
    values = constant(argument)
    if values is None:
        return None
    aligned = (1,) * (len(shape) - values.ndim) + values.shape
    if values.size == 1:
        return np.full(shape[1], values.item(), dtype=np.float32)
    wanted = (1, shape[1], *(1 for _ in shape[2:]))
    return values.reshape(-1) if aligned == wanted else None


def _pool(rewriter: Rewriter, var: Any, call: Any) -> bool:
    data, shape, attrs = rewriter.value(call.args[0]), shape_of(var), call.attrs
    if not rewriter.is_blocked(data) or shape is None or str(attrs.layout) != "NCHW":
        return False
    if isinstance(data, OpenConcat) and data.sole and data.blocked is None:
        return _pool_parts(rewriter, var, call, data)
    window = window_of(attrs, tuple(int(size) for size in attrs.pool_size))
    grown = window.padded_to(data.shape[2], data.shape[3], (shape[2], shape[3]))
    if call.op.name == "relax.nn.max_pool2d":
        rewriter.emit_kernel(var, compute.max_pool2d, [rewriter.blocked(data)], "max_pool2d", window=grown)
        return True
    if attrs.count_include_pad and grown != window:
        return False
    rewriter.emit_kernel(
        var,
        compute.avg_pool2d,
        [rewriter.blocked(data)],
        "avg_pool2d",
        window=grown,
        count_padding=bool(attrs.count_include_pad),
    )
    return True


def _pool_parts(rewriter: Rewriter, var: Any, call: Any, data: OpenConcat) -> bool:
    """Pool first and put together what is left: less to copy."""
    shape, pooled = shape_of(var) or (), []
    for part in data.parts:
        one = relax.Var("part", relax.TensorType((shape[0], part.shape[1], *shape[2:]), "float32"))
        source = relax.Var("source", relax.TensorType(part.shape, "float32"))
        rewriter.bind(source, part)
        if not _pool(rewriter, one, relax.Call(call.op, [source], call.attrs)):
            return False
        pooled.append(rewriter.value(one))
    rewriter.bind(var, OpenConcat(shape=shape, parts=pooled, sole=rewriter.read_once(var)))
    return True


def _concat(rewriter: Rewriter, var: Any, call: Any) -> bool:
    fields = call.args[0].fields if isinstance(call.args[0], relax.Tuple) else ()
    parts = [rewriter.value(one) for one in fields]
    whole = all(len(part.shape) in (3, 4) and part.shape[1] % rewriter.block == 0 for part in parts)
    blocked = any(rewriter.is_blocked(part) for part in parts)
    if not parts or not whole or not blocked or int(call.attrs.axis) != 1:
        return False
    shape = shape_of(var) or ()
    rewriter.bind(var, OpenConcat(shape=shape, parts=parts, sole=rewriter.read_once(var)))
    return True


_UNARY = (
    "nn.relu",
    "clip",
    "tanh",
    "nn.leakyrelu",
    "abs",
    "negative",
    "erf",
)
_BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")

_BLOCKED: dict[str, Rule] = {
    "relax.nn.conv1d": _conv2d,
    "relax.nn.conv2d": _conv2d,
    "relax.nn.batch_norm": _batch_norm,
    "relax.nn.dropout": _dropout,
    "relax.nn.max_pool2d": _pool,
    "relax.nn.avg_pool2d": _pool,
    "relax.concat": _concat,
    "TupleGetItem": _tuple_item,
    **{f"relax.{name}": wholes.elementwise for name in _UNARY},
    **{f"relax.{name}": _binary for name in _BINARY},
}


def _together(*rooms: dict[str, Rule]) -> dict[str, tuple[Rule, ...]]:
    names = dict.fromkeys(name for room in rooms for name in room)
    return {name: tuple(room[name] for room in rooms if name in room) for name in names}


RULES = _together(
    wholes.RULES,
    two_wholes.RULES,
    activations.RULES,
    _BLOCKED,
    images.RULES,
    channels_last.RULES,
    attending.RULES,
    products.RULES,
    along_lines.RULES,
    reducing.RULES,
    rounding.RULES,
    scattering.RULES,
    volumes.RULES,
    wholes.LAST,
)
"""The rules of every operator, to be tried in order."""
