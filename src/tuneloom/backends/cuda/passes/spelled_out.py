"""Attention as loops, where nobody takes it whole; sums are in single precision."""

from math import sqrt
from typing import Any


def attention_loops(builder: Any, call: Any) -> Any:
    """The loops of `relax.nn.attention` in the type of its operands; TVM's own are in single precision."""
    from tvm.ir import Op

    if call.attrs.causal_mask is not None or call.attrs.window_size is not None:
        return Op.get("relax.nn.attention").get_attr("FLegalize")(builder, call)
    query, key, values = call.args
    width = int(query.ty.shape.values[-1])
    scale = 1.0 / sqrt(width) if call.attrs.scale is None else float(call.attrs.scale.value)
    return builder.call_te(_loops, query, key, values, scale=scale, primfunc_name_hint="attention")


def _loops(query: Any, key: Any, values: Any, scale: float) -> Any:
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
    shares = topi.nn.softmax(topi.multiply(scores, tirx.const(scale, "float32")), axis=-1)
    result = te.compute(
        (batch, rows, heads, depth),
        lambda b, i, h, e: te.sum(shares[b, h, i, t] * wide(values[b, t, h, e]), axis=t),
        name="weighed",
    )
    return result if str(query.dtype) == "float32" else topi.cast(result, str(query.dtype))
