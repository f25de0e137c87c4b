"""Norms of groups that are too long for one block: summed for each channel, then over a group's channels.

A network that normalises whole images has one group, and TVM's loops leave that to one block of threads.
"""

from math import prod
from typing import Any

from tuneloom.compiler.lazy import relax
from tuneloom.compiler.rewriting import dtype_of, shape_of


def normed_by_channel(builder: Any, norm: Any, scale: Any, shift: Any) -> Any:
    """A group norm, given its factor and summand for each channel, which are broadcast over pixels."""
    op, shape, dtype = relax.op, shape_of(norm) or (), dtype_of(norm)
    groups, pixels = int(norm.attrs.num_groups), list(range(2, len(shape)))
    grouped = (shape[0], groups, shape[1] // groups)

    def mean_of(values: Any) -> Any:
        """The mean of each group."""
        sums = builder.emit(op.sum(values, axis=pixels))
        whole = builder.emit(op.sum(builder.emit(op.reshape(sums, grouped)), axis=-1, keepdims=True))
        return builder.emit(op.multiply(whole, relax.const(groups / prod(shape[1:]), "float32")))

    def by_channel(value: Any) -> Any:
        """One number a group as one for each of its channels."""
        wide = builder.emit(op.broadcast_to(value, grouped))
        return builder.emit(op.reshape(wide, (*shape[:2], *(1 for _ in pixels))))

    wide = norm.args[0] if dtype == "float32" else builder.emit(op.astype(norm.args[0], "float32"))
    mean = by_channel(mean_of(wide))
    centred = builder.emit(op.subtract(wide, mean))
    variance = mean_of(builder.emit(op.multiply(centred, centred)))
    epsilon = relax.const(float(norm.attrs.epsilon), "float32")
    root = by_channel(builder.emit(op.rsqrt(builder.emit(op.add(variance, epsilon)))))
    factor = builder.emit(op.multiply(root, scale))
    summand = builder.emit(op.subtract(shift, builder.emit(op.multiply(mean, factor))))
    done = op.add(builder.emit(op.multiply(wide, factor)), summand)
    return done if dtype == "float32" else op.astype(builder.emit(done), dtype)
