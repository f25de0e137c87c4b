"""Attention as loops, where nobody takes it whole; sums are in single precision."""

from math import sqrt
from typing import Any


def attention_loops(builder: Any, call: Any) -> Any:
    """The loops of `relax.nn.attention` in the type of its operands; TVM's own are in single precision."""
    from tvm.ir import Op

    if call.attrs.window_size is not None:
        return Op.get(call.op.name).get_attr("FLegalize")(builder, call)
    width = int(call.args[0].ty.shape.values[-1])
    scale = 1.0 / sqrt(width) if call.attrs.scale is None else float(call.attrs.scale.value)
    shift = causal_shift(call)
    return builder.call_te(_loops, *call.args, scale=scale, shift=shift, primfunc_name_hint="attention")


def causal_shift(call: Any) -> int | None:
    """How far past its own number a row sees keys; None if it sees all."""
    queries, keys = (int(one.ty.shape.values[1]) for one in call.args[:2])
    how = None if call.attrs.causal_mask is None else str(call.attrs.causal_mask)
    return {None: None, "TopLeft": 0, "BottomRight": keys - queries}[how]


def _loops(query: Any, key: Any, values: Any, *bias: Any, scale: float, shift: int | None) -> Any:
    from tvm import te, tirx, topi

    batch, rows, heads, width = query.shape
    columns, depth = key.shape[1], values.shape[3]
    d, t = te.reduce_axis((0, width), "d"), te.reduce_axis((0, columns), "t")

    def wide(value: Any) -> Any:
        return value.astype("float32")

    scores = te.compute(
        (batch, heads, rows, columns),
        lambda b, h, i, j: te.sum(wide(query[b, i, h, d]) * wide(key[b, j, h, d]), axis=d),
        name="scores",
    )
    scores = topi.multiply(scores, tirx.const(scale, "float32"))
    for each in bias:
        scores = topi.add(scores, topi.cast(each, "float32"))
    if shift is not None:
        plain, lowest = scores, tirx.min_value("float32")
        scores = te.compute(
            plain.shape,
            lambda b, h, i, j: tirx.Select(j <= i + shift, plain[b, h, i, j], lowest),
            name="seen",
        )
    shares = topi.nn.softmax(scores, axis=-1)
    result = te.compute(
        (batch, rows, heads, depth),
        lambda b, i, h, e: te.sum(shares[b, h, i, t] * wide(values[b, t, h, e]), axis=t),
        name="weighed",
    )
    return result if str(query.dtype) == "float32" else topi.cast(result, str(query.dtype))
