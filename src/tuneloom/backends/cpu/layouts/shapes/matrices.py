"""Matrix products whose right side lies in panels of vectors, written as tensor expressions.

Rows and columns that no tile divides are computed a little further than needed, from
values that are there anyway, and cut off when the result is stored.
"""

from typing import Any

from tuneloom.compiler.lazy import te

_TILES = (8, 7, 6, 5, 4)
FEW_ROWS = 4
_NARROW_LANES = 4
_MOST_ADDED = 0.1


def padded_rows(rows: int) -> int:
    """So many rows, or a few more, that a good tile divides them."""
    if rows <= FEW_ROWS or any(rows % tile == 0 for tile in _TILES):
        return rows
    return min(-(-rows // tile) * tile for tile in (8, 5, 4))


def panel_width(rows: int, width: int, lanes: int) -> int:
    """How many columns lie together, so that a tile reads one stream instead of several.

    Streams a power of two apart would push each other out of the cache. A single row
    leaves all registers to columns.
    """
    most = 8 if rows == 1 else 4 if lanes <= _NARROW_LANES else 2
    for vectors in (most, most // 2, most // 4):
        if vectors and -width % (vectors * lanes) <= _MOST_ADDED * width:
            return vectors * lanes
    return lanes


def product(data: Any, panels: Any, width: int) -> Any:
    """(…, rows, inner) times panels (…, width / panel, inner, panel): (…, rows, width).

    Panels without leading axes are the same for all matrices of the left side; every
    axis of it but the last then counts rows.
    """
    lead = [int(extent) for extent in data.shape[:-1]]
    *own, count, inner, panel = (int(extent) for extent in panels.shape)
    long = len(lead) - 1 if own else lead.index(max(lead))
    shape = [*lead, count * panel]
    shape[long] = padded_rows(lead[long])
    k = te.reduce_axis((0, inner), name="k")

    def value(*at: Any) -> Any:
        *rows, column = at
        if shape[long] != lead[long]:
            rows[long] = te.min(rows[long], lead[long] - 1)
        which = rows[: len(own)]
        return te.sum(data[*rows, k] * panels[*which, column // panel, k, column % panel], axis=[k])

    whole = te.compute(shape, value, name="product")
    if shape == [*lead, width]:
        return whole
    return te.compute((*lead, width), lambda *at: whole[at], name="product_trimmed")


def to_panels(data: Any, panel: int, *, transposed: bool = False) -> Any:
    """(…, inner, width) to (…, width / panel, inner, panel); the last columns may repeat."""
    *lead, inner, width = data.shape
    if transposed:
        inner, width = width, inner
    count = -(-int(width) // panel)

    def value(*at: Any) -> Any:
        *batch, block, k, lane = at
        column = block * panel + lane
        if int(width) % panel:
            column = te.min(column, width - 1)
        return data[*batch, column, k] if transposed else data[*batch, k, column]

    return te.compute((*lead, count, inner, panel), value, name="to_panels")
