"""Fourier transforms of real lines as matrix products, which are tuned like any other.

A line of n = a × b numbers is a matrix: its columns are transformed, turned by what their place in the line
asks for, and then its rows are transformed. That takes 2 (a + b) products a number instead of n.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.compiler.lazy import relax

_SHORT = 64
"""Lines that are transformed at once: two small products would take longer."""

Array = NDArray[np.float32]


def spectrum(bb: Any, lines: Any, count: int, length: int) -> Any:
    """The transforms of `count` lines: (count, length // 2 + 1, 2), real and imaginary parts."""
    half = length // 2 + 1
    rows, columns = _divided(length)
    if rows == 1:
        whole = bb.emit(relax.op.matmul(lines, _constant(_both(_waves(length, half)))))
        return _side_by_side(bb, whole, (count, 2, half), (0, 2, 1))
    turned = _columns(bb, lines, _LineMatrices(count, rows, columns))
    kept = columns // 2 + 1
    cos, sin = _waves(columns, kept)
    last = _constant(np.block([[cos, -sin], [sin, cos]]))
    found = bb.emit(relax.op.matmul(turned, last))
    ordered = _side_by_side(bb, found, (count, rows, 2, kept), (0, 3, 1, 2))
    flat = bb.emit(relax.op.reshape(ordered, (count, kept * rows, 2)))
    return bb.emit(relax.op.strided_slice(flat, axes=[1], begin=[0], end=[half]))


@dataclass(frozen=True, slots=True)
class _LineMatrices:
    """Lines as matrices."""

    count: int
    rows: int
    columns: int


def _columns(bb: Any, lines: Any, size: _LineMatrices) -> Any:
    """All columns transformed and turned: (count, rows, 2 × columns), real parts before imaginary ones."""
    matrices = bb.emit(relax.op.reshape(lines, (size.count, size.rows, size.columns)))
    across = bb.emit(relax.op.permute_dims(matrices, (0, 2, 1)))
    first = bb.emit(relax.op.matmul(across, _constant(_both(_waves(size.rows, size.rows)))))
    real, imaginary = (
        bb.emit(relax.op.strided_slice(first, axes=[2], begin=[at], end=[at + size.rows]))
        for at in (0, size.rows)
    )
    places = np.outer(np.arange(size.columns), np.arange(size.rows))
    angles = places * (2 * math.pi / (size.rows * size.columns))
    cos, sin = _constant(np.cos(angles)), _constant(np.sin(angles))
    turned = [
        relax.op.add(bb.emit(relax.op.multiply(real, cos)), bb.emit(relax.op.multiply(imaginary, sin))),
        relax.op.subtract(bb.emit(relax.op.multiply(imaginary, cos)), bb.emit(relax.op.multiply(real, sin))),
    ]
    back = [bb.emit(relax.op.permute_dims(bb.emit(one), (0, 2, 1))) for one in turned]
    return bb.emit(relax.op.concat(back, axis=2))


def _divided(length: int) -> tuple[int, int]:
    """Rows and columns of a line as a matrix; one row for a line that is short or a prime number."""
    if length <= _SHORT:
        return 1, length
    wanted = math.sqrt(length)
    rows = min((n for n in range(1, length + 1) if length % n == 0), key=lambda n: abs(math.log(n / wanted)))
    return rows, length // rows


def _waves(length: int, kept: int) -> tuple[Array, Array]:
    """Cosines and sines of the first `kept` frequencies of a line."""
    angles = np.outer(np.arange(length), np.arange(kept)) % length * (2 * math.pi / length)
    return np.cos(angles), np.sin(angles)


def _both(waves: tuple[Array, Array]) -> Array:
    cos, sin = waves
    return np.concatenate([cos, -sin], axis=1)


def _side_by_side(bb: Any, value: Any, shape: tuple[int, ...], order: tuple[int, ...]) -> Any:
    return bb.emit(relax.op.permute_dims(bb.emit(relax.op.reshape(value, shape)), order))


def _constant(values: Any) -> Any:
    return relax.const(values.astype("float32"))
