"""Attention as one kernel: softmax(queries · keys · scale + mask) · values, written as a tensor expression.

A schedule takes some queries at a time, so that their scores stay in the cache and are never written to
memory. Keys and values come in panels; keys that fill up the last panel repeat the last one, which does not
change the largest score, and have no weight.
"""

from typing import Any

from tuneloom.backends.cpu.layouts.kernels.lines import reduced
from tuneloom.backends.cpu.layouts.shapes.matrices import padded_rows
from tuneloom.compiler.lazy import te, tirx, topi

SCORES, KEPT = "attention_scores", "attention_kept"
SUMS, RESULT, TRIMMED = "attention_sums", "attention", "attention_trimmed"


_WORTH_IT_BYTES = 256 * 1024
"""So many bytes of scores for one matrix no longer stay near the core from one kernel to the next."""


def pays(scores: tuple[int, ...], lanes: int) -> bool:
    """Whether one kernel should be faster than one for each step, for scores of this shape."""
    *_, rows, count = scores
    return 4 * rows * count >= _WORTH_IT_BYTES and count >= lanes


def attention(
    queries: Any, keys: Any, values: Any, *mask: Any, count: int, width: int, scale: float, lanes: int
) -> Any:
    """(…, rows, inner) queries, panels of `count` keys and of values with `width` columns: (…, rows, width).

    A mask is added to the scores, and is broadcast over all of their axes where it has an extent of 1.
    """
    *lead, rows, inner = (int(extent) for extent in queries.shape)
    *_, blocks, _, panel = (int(extent) for extent in keys.shape)
    *_, columns, _, wide = (int(extent) for extent in values.shape)
    made, length = padded_rows(rows), blocks * panel
    k, n = te.reduce_axis((0, inner), name="k"), te.reduce_axis((0, count), name="n")

    def score(*at: Any) -> Any:
        *batch, row, key = at
        row = row if made == rows else te.min(row, rows - 1)
        return te.sum(queries[*batch, row, k] * keys[*batch, key // panel, k, key % panel], axis=[k])

    scores = te.compute((*lead, made, length), score, name=SCORES)

    def weighted(*at: Any) -> Any:
        found = scores[at] * tirx.const(scale, "float32") if scale != 1.0 else scores[at]
        return found + _broadcast(mask[0], at, rows, count) if mask else found

    kept = te.compute((*lead, made, length), weighted, name=KEPT)
    largest = reduced(lambda *at: kept[at], kept.shape, lanes, "max")
    moved = te.compute(kept.shape, lambda *at: kept[at] - largest[at[:-1]], name="moved")
    powers = topi.fast_exp(moved)
    if length != count:
        full, zero = powers, tirx.const(0.0, "float32")
        powers = te.compute(
            kept.shape, lambda *at: tirx.Select(at[-1] < count, full[at], zero), name="of_keys"
        )
    total = reduced(lambda *at: powers[at], kept.shape, lanes, "sum")

    def summed(*at: Any) -> Any:
        *batch, row, column = at
        return te.sum(powers[*batch, row, n] * values[*batch, column // wide, n, column % wide], axis=[n])

    sums = te.compute((*lead, made, columns * wide), summed, name=SUMS)
    one = tirx.const(1.0, "float32")
    share = te.compute(total.shape, lambda *at: one / total[at], name="share")
    whole = te.compute(sums.shape, lambda *at: sums[at] * share[at[:-1]], name=RESULT)
    if (made, columns * wide) == (rows, width):
        return whole
    return te.compute((*lead, rows, width), lambda *at: whole[at], name=TRIMMED)


def _broadcast(mask: Any, at: Any, rows: int, count: int) -> Any:
    """What a mask adds to a score; it may have fewer axes than the scores."""
    shape = [int(extent) for extent in mask.shape]
    *batch, row, key = at
    places = [*batch, te.min(row, rows - 1), te.min(key, count - 1)][len(at) - len(shape) :]
    return mask[*(0 if extent == 1 else place for extent, place in zip(shape, places, strict=True))]
