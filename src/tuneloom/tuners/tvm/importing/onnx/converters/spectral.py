"""Fourier transforms of ONNX as products with constant matrices."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.onnx.converters.constants import array, shape_of
from tuneloom.tuners.tvm.importing.onnx.converters.making import own
from tuneloom.tuners.tvm.importing.spectra import spectrum

_LONGEST = 2048
"""Longer lines of complex numbers would need a matrix of more than 64 MiB."""


def spectral() -> dict[str, Any]:
    """Converters by the name of their operator."""
    transform = type("Converter", (), {"get_converter": staticmethod(_transform_of_version)})
    return {"DFT": transform, "STFT": own(_frames_transformed)}


def _transform_of_version(version: int) -> Any:
    """Version 20 of ONNX moved the axis from the attributes to the inputs, and its default."""
    usual = 1 if version < 20 else -2
    return lambda bb, inputs, attr, params: _transform(bb, inputs, {"axis": usual, **attr})


def _frames_transformed(bb: Any, inputs: Any, attr: Any) -> Any:
    """Frames of a real signal, each times the window, and their spectra."""
    signal, step, window, length = [*inputs, None, None][:4]
    batch, count, *parts = shape_of(signal)
    size, every = _frame_length(window, length), _whole(step)
    if size is None or every is None or parts == [2]:
        raise ValueError("frames of complex numbers, or of a length that is not constant")
    starts = np.arange(0, count - size + 1, every)
    places = relax.const((starts[:, None] + np.arange(size)).reshape(-1), "int64")
    flat = bb.emit(relax.op.reshape(signal, (batch, count)))
    lines = bb.emit(relax.op.take(flat, places, axis=1))
    lines = bb.emit(relax.op.reshape(lines, (batch * len(starts), size)))
    if window is not None:
        lines = bb.emit(relax.op.multiply(lines, window))
    found = _of_real_lines(bb, lines, size, bool(attr.get("onesided", 1)))
    return relax.op.reshape(found, (batch, len(starts), *shape_of(found)[1:]))


def _frame_length(window: Any, length: Any) -> int | None:
    given = _whole(length)
    return shape_of(window)[0] if given is None and window is not None else given


def _whole(value: Any) -> int | None:
    """A known whole number; None when it is left out, or known only when the model runs."""
    known = array(value)
    return None if known is None else int(known.item())


@dataclass(frozen=True, slots=True)
class _Lines:
    """What is to be transformed: lines along one axis, of real or complex numbers."""

    axis: int
    length: int
    complex: bool


def _transform(bb: Any, inputs: Any, attr: Any) -> Any:
    """Along one axis; lines are cut, or continued with zeros, to the length that is asked for."""
    data, wanted, axis = [*inputs, None, None][:3]
    shape = shape_of(data)
    inverse, onesided = bool(attr.get("inverse", 0)), bool(attr.get("onesided", 0))
    along = attr["axis"] if axis is None else _whole(axis)
    if along is None or (inverse and onesided):
        raise ValueError("an axis that is not constant, or real lines of a half spectrum")
    place = int(along) % len(shape)
    length = shape[place] if wanted is None else _whole(wanted)
    if length is None:
        raise ValueError("a length that is not constant")
    lines = _Lines(place, length, shape[-1] == 2)
    turned = _axis_last(bb, data, lines)
    lead = shape_of(turned)[:-2]
    flat = bb.emit(relax.op.reshape(turned, (int(np.prod(lead)), length, shape[-1])))
    found = _of_lines(bb, flat, lines, onesided, inverse)
    whole = bb.emit(relax.op.reshape(found, (*lead, *shape_of(found)[1:])))
    order = list(range(len(lead)))
    order.insert(place, len(lead))
    return relax.op.permute_dims(whole, [*order, len(lead) + 1])


def _axis_last(bb: Any, data: Any, lines: _Lines) -> Any:
    """The data with the lines just before the parts of their numbers, as long as they are to be."""
    shape = shape_of(data)
    order = [at for at in range(len(shape) - 1) if at != lines.axis]
    turned = bb.emit(relax.op.permute_dims(data, [*order, lines.axis, len(shape) - 1]))
    known, lead = shape[lines.axis], len(order)
    if known > lines.length:
        return bb.emit(relax.op.strided_slice(turned, axes=[lead], begin=[0], end=[lines.length]))
    if known < lines.length:
        rest = (*(shape[at] for at in order), lines.length - known, shape[-1])
        return bb.emit(relax.op.concat([turned, relax.const(np.zeros(rest, "float32"))], axis=lead))
    return turned


def _of_lines(bb: Any, lines: Any, like: _Lines, onesided: bool, inverse: bool) -> Any:
    count, length, parts = shape_of(lines)
    if not like.complex and not inverse:
        return _of_real_lines(bb, bb.emit(relax.op.reshape(lines, (count, length))), length, onesided)
    kept = length // 2 + 1 if onesided else length
    flat = bb.emit(relax.op.reshape(lines, (count, length * parts)))
    matrix = _matrix(length, kept, inverse)[: length * 2 : 2 // parts]
    return bb.emit(relax.op.reshape(bb.emit(relax.op.matmul(flat, relax.const(matrix))), (count, kept, 2)))


def _of_real_lines(bb: Any, lines: Any, length: int, onesided: bool) -> Any:
    """Spectra as (line, frequency, part); the second half mirrors the first."""
    half = spectrum(bb, lines, shape_of(lines)[0], length)
    if onesided:
        return half
    mirrored = relax.const(np.arange((length - 1) // 2, 0, -1), "int64")
    rest = bb.emit(relax.op.take(half, mirrored, axis=1))
    rest = bb.emit(relax.op.multiply(rest, relax.const(np.array([1, -1], "float32"))))
    return bb.emit(relax.op.concat([half, rest], axis=1))


def _matrix(length: int, kept: int, inverse: bool) -> Any:
    """What a line of numbers, real and imaginary parts in turn, is multiplied with."""
    if length > _LONGEST:
        raise ValueError(f"lines of {length} complex numbers; at most {_LONGEST} are transformed")
    turns = np.outer(np.arange(length), np.arange(kept)) % length / length
    waves = np.exp((2j if inverse else -2j) * np.pi * turns) / (length if inverse else 1)
    matrix = np.empty((length, 2, kept, 2), "float32")
    matrix[:, 0, :, 0], matrix[:, 0, :, 1] = waves.real, waves.imag
    matrix[:, 1, :, 0], matrix[:, 1, :, 1] = -waves.imag, waves.real
    return matrix.reshape(length * 2, kept * 2)
