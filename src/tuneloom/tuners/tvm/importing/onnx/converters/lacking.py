"""Conversions of ONNX operators that TVM's importer lacks, or of which it knows only a part."""

from typing import Any

import numpy as np

from tuneloom.compiler.lazy import onnx, relax
from tuneloom.tuners.tvm.importing.onnx.converters.constants import dtype_of, is_constant, shape_of
from tuneloom.tuners.tvm.importing.onnx.converters.making import Usual, around, own

MIXED_BLOCKS = {"DCR": (0, 3, 5, 1, 2, 4), "CRD": (0, 1, 3, 5, 2, 4)}
"""Where depth, rows and columns of (batch, depth, row, in the block, column, in the block) go."""


def lacking(frontend: Any) -> dict[str, Any]:
    """Converters by the name of their operator."""
    return {
        "BitShift": own(_shifted),
        "EyeLike": own(_identity_matrix),
        "LayerNormalization": around(frontend.LayerNormalization, _layer_normalization),
        "Mod": around(frontend.Mod, _mod),
        "RMSNormalization": around(frontend.RMSNormalization, _rms_normalization),
        "LpNormalization": own(_unit_length),
        "ReverseSequence": own(_reversed_sequences),
        "SpaceToDepth": own(_blocks_to_depth),
    }


def _layer_normalization(bb: Any, inputs: Any, attr: Any, usual: Usual) -> Any:
    """With the mean and the inverse deviation, which TVM's own leaves out; unread they cost nothing."""
    normal = bb.normalize(usual()).fields[0]
    data = bb.emit(relax.op.astype(inputs[0], "float32"))
    rank = len(shape_of(data))
    axes = list(range(attr.get("axis", -1) % rank, rank))
    mean = bb.emit(relax.op.mean(data, axes, keepdims=True))
    variance = bb.emit(relax.op.variance(data, axes, keepdims=True))
    least = relax.const(attr.get("epsilon", 1e-5), "float32")
    return relax.Tuple([normal, mean, bb.emit(relax.op.rsqrt(bb.emit(relax.op.add(variance, least))))])


def _rms_normalization(bb: Any, inputs: Any, attr: Any, usual: Usual) -> Any:
    """TVM's own can't normalise over all axes: there is one more then."""
    shape = shape_of(inputs[0])
    if attr.get("axis", -1) % len(shape):
        return usual()
    data = bb.emit(relax.op.expand_dims(inputs[0], 0))
    scale = bb.emit(relax.op.broadcast_to(inputs[1], shape))
    found = usual(type(inputs)([data, scale]), {**attr, "axis": 1})
    return relax.op.squeeze(bb.emit(found), [0])


def _mod(bb: Any, inputs: Any, attr: Any, usual: Usual) -> Any:
    """Of real numbers with the sign of the divisor, also where that is infinite."""
    if attr.get("fmod", 0) or "float" not in dtype_of(inputs[0]) or is_constant(inputs[0]):
        return usual()
    rest, by = bb.emit(relax.op.mod(*inputs)), inputs[1]
    zero = relax.const(0, dtype_of(rest))
    signs = bb.emit(relax.op.less(bb.emit(relax.op.multiply(rest, by)), zero))
    return relax.op.where(signs, bb.emit(relax.op.add(rest, by)), rest)


def _shifted(bb: Any, inputs: Any, attr: Any) -> Any:
    """Bits moved; by their number or more, or by less than none, only signs are left of them."""
    data, by = inputs
    kind = dtype_of(data)
    left, bits = attr["direction"] in (b"LEFT", "LEFT"), np.iinfo(kind).bits
    zero, last = relax.const(0, kind), relax.const(bits - 1, kind)
    low, high = bb.emit(relax.op.less(by, zero)), bb.emit(relax.op.greater(by, last))
    outside = bb.emit(relax.op.logical_or(low, high))
    shift = relax.op.left_shift if left else relax.op.right_shift
    moved = bb.emit(shift(data, bb.emit(relax.op.where(outside, last, by))))
    signs = zero if left or kind.startswith("u") else moved
    return relax.op.where(outside, signs, moved)


def _identity_matrix(bb: Any, inputs: Any, attr: Any) -> Any:
    """Ones on a diagonal: only the shape of the input counts, and that is known."""
    wanted = attr.get("dtype")
    dtype = dtype_of(inputs[0]) if wanted is None else onnx.helper.tensor_dtype_to_np_dtype(wanted).name
    rows, columns = shape_of(inputs[0])
    return relax.const(np.eye(rows, columns, k=attr.get("k", 0), dtype=np.dtype(dtype)))


def _unit_length(bb: Any, inputs: Any, attr: Any) -> Any:
    """Every line along an axis divided by its length; lines of zeros stay zeros."""
    data, axis = inputs[0], attr.get("axis", -1)
    if attr.get("p", 2) == 1:
        length = bb.emit(relax.op.sum(bb.emit(relax.op.abs(data)), axis, keepdims=True))
    else:
        squares = bb.emit(relax.op.multiply(data, data))
        length = bb.emit(relax.op.sqrt(bb.emit(relax.op.sum(squares, axis, keepdims=True))))
    one, zero = (relax.const(value, dtype_of(data)) for value in (1, 0))
    length = bb.emit(relax.op.where(bb.emit(relax.op.equal(length, zero)), one, length))
    return relax.op.divide(data, length)


def _reversed_sequences(bb: Any, inputs: Any, attr: Any) -> Any:
    """The first entries of every sequence, as many as its length says, in the other order."""
    data, lengths = inputs
    shape = shape_of(data)
    batch, time = attr.get("batch_axis", 1), attr.get("time_axis", 0)
    along = [1] * len(shape)
    along[batch] = shape[batch]
    lengths = bb.emit(relax.op.reshape(lengths, along))
    steps = np.arange(shape[time]).reshape([-1 if axis == time else 1 for axis in range(len(shape))])
    place = relax.const(steps, "int64")
    last = bb.emit(relax.op.subtract(lengths, relax.const(1, "int64")))
    back = bb.emit(relax.op.subtract(last, place))
    index = bb.emit(relax.op.where(bb.emit(relax.op.less(place, lengths)), back, place))
    return relax.op.gather_elements(data, bb.emit(relax.op.broadcast_to(index, shape)), axis=time)


def _blocks_to_depth(bb: Any, inputs: Any, attr: Any) -> Any:
    """Squares of pixels beside each other in depth, in one of ONNX's two orders."""
    size, mode = int(attr["blocksize"]), attr.get("mode", b"DCR")
    batch, depth, rows, columns = shape_of(inputs[0])
    rows, columns = rows // size, columns // size
    order = MIXED_BLOCKS[mode.decode() if isinstance(mode, bytes) else mode]
    blocks = bb.emit(relax.op.reshape(inputs[0], (batch, depth, rows, size, columns, size)))
    mixed = bb.emit(relax.op.permute_dims(blocks, order))
    return relax.op.reshape(mixed, (batch, depth * size * size, rows, columns))
