"""Convolutions as implicit products: rows are output pixels, columns are channels.

The depth is the window and the input channels.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices, Template, Unfit
from tuneloom.backends.cuda.triton.coordinates import Coordinate, Place, Variable, text_of
from tuneloom.backends.cuda.triton.programs import TritonProgram
from tuneloom.backends.cuda.triton.templates.images import (
    Layout,
    SlidingWindow,
    pixels,
    result_place,
)
from tuneloom.backends.cuda.triton.templates.matrices import Tile, finished, matrix_space, refused
from tuneloom.backends.cuda.triton.templates.tiles import dot, precisions_of, tiled
from tuneloom.backends.cuda.triton.writing import Draft
from tuneloom.backends.meaning import Meaning, MeaningStep

_OPERATORS = frozenset(("relax.nn.conv1d", "relax.nn.conv2d"))
_FEW_CHANNELS = 16


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution in a meaning; `batch` are its groups."""

    meaning: Meaning
    value: int
    step: MeaningStep
    dtype: str
    batch: int
    rows: int
    columns: int
    channels: int
    image: Layout
    filters: Layout
    result: Layout
    window: SlidingWindow

    @property
    def depth(self) -> int:
        """How many products make one sum."""
        return self.window.size[0] * self.window.size[1] * self.channels

    def place(self, batch: Variable, row: Variable, column: Variable) -> Place:
        """Where an element of the result lies."""
        channel = Coordinate((*batch.whole().digits, *column.whole().digits))
        return result_place(row, channel, self.result)


def convolution_of(meaning: Meaning, gpu: Gpu) -> Convolution | None:
    """The convolution of a meaning that has exactly one, if the GPU multiplies its type."""
    found = _found(meaning)
    return found if found is not None and gpu.computes(found.dtype) else None


@lru_cache(maxsize=256)
def _found(meaning: Meaning) -> Convolution | None:
    steps = [
        (value, step)
        for value, step in enumerate(meaning.steps, len(meaning.inputs))
        if step.operator in _OPERATORS
    ]
    return _described(meaning, *steps[0]) if len(steps) == 1 else None


def _described(meaning: Meaning, value: int, step: MeaningStep) -> Convolution | None:
    first, second = (meaning.type_of(each) for each in step.operands)
    attributes = step.attributes
    layouts = [
        attributes["data_layout"],
        attributes["kernel_layout"],
        attributes.get("out_layout") or attributes["data_layout"],
    ]
    plain = all(sorted(each) == sorted(set(each)) for each in layouts) and layouts[0].isalpha()
    if not plain or any(each >= len(meaning.inputs) for each in step.operands) or first.dtype != second.dtype:
        return None
    shapes = (first.shape, second.shape, step.result.shape)
    image, filters, result = (Layout(each, shape) for each, shape in zip(layouts, shapes, strict=True))
    groups = int(attributes["groups"])
    rows = result.extent("N") * result.extent("H") * result.extent("W")
    window = SlidingWindow.of(step, (filters.extent("H"), filters.extent("W")))
    return Convolution(
        meaning, value, step, first.dtype, groups, rows, result.extent("C") // groups, filters.extent("I"),
        image, filters, result, window,
    )  # fmt: skip


def _space(meaning: Meaning, gpu: Gpu) -> KnobChoices | None:
    found = convolution_of(meaning, gpu)
    if found is None or (found.batch > 1 and min(found.channels, found.columns) < 8):
        return None
    return matrix_space(found, gpu, precisions_of(found.step, found.dtype), {})


def _refusal(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> str:
    found = convolution_of(meaning, gpu)
    assert found is not None
    if _steps(found, configuration["tile_k"]) < configuration["split"]:
        return f"can't be split in {configuration['split']}"
    return refused(found, gpu, configuration)


def _is_flat(found: Convolution) -> bool:
    """Whether window and channels are one loop, since channels alone would not fill a tile."""
    return found.channels < _FEW_CHANNELS


def _steps(found: Convolution, tile_k: int) -> int:
    if _is_flat(found):
        return ceil(found.depth / tile_k)
    return found.window.size[0] * found.window.size[1] * ceil(found.channels / tile_k)


def _program(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> TritonProgram:
    found = convolution_of(meaning, gpu)
    if found is None:
        raise Unfit("not one convolution")

    def write(draft: Draft, tile: Tile) -> None:
        _multiply(draft, found, tile, configuration)

    return finished("convolution", found, gpu, configuration, lambda draft: write)


def _multiply(draft: Draft, found: Convolution, tile: Tile, configuration: Configuration) -> None:
    """Write the loop over window and input channels."""
    _bases(draft, found, tile)
    tile_k, inside = configuration["tile_k"], found.window.stays_inside(found.image, found.result)
    steps = _steps(found, tile_k)
    each = ceil(steps / tile.split)
    with draft.block(f"for part in range(0, {each}):"):
        draft.line(f"step = tl.program_id(2) * {each} + part" if tile.split > 1 else "step = part")
        over = f"step < {steps}" if each * tile.split > steps else ""
        for side, axis in (("a", "[None, :]"), ("b", "[:, None]")):
            _taps(draft, found, tile_k, side, axis)
        masks = [
            tile.row.mask,
            _within(draft, found) if not inside else "",
            over,
            _channel_mask(found, tile_k, "a"),
        ]
        image = f"pixel + {_tap_offset(found, found.image, 'a', 'C')}"
        left = loaded(draft, found.step.operands[0], image, masks)
        weights = f"filter + {_tap_offset(found, found.filters, 'b', 'I')}"
        right = loaded(
            draft,
            found.step.operands[1],
            weights,
            [tile.column.mask, over, _channel_mask(found, tile_k, "b")],
        )
        sums = dot(left, right, "sums", found.dtype, configuration["precision"], configuration["tile_k"])
        draft.line(f"sums = {sums}")


def _bases(draft: Draft, found: Convolution, tile: Tile) -> None:
    """Names for where the window of a pixel begins, and for the filter of a channel."""
    image, filters, window = found.image, found.filters, found.window
    number, row, column = (text_of(each) for each in pixels(tile.row, found.result))
    draft.line(f"top = {row} * {window.strides[0]} - {window.before[0]}")
    draft.line(f"left = {column} * {window.strides[1]} - {window.before[1]}")
    group = f" + batch * {found.channels * image.stride('C')}" if found.batch > 1 else ""
    rows = f"top * {image.stride('H')} + left * {image.stride('W')}"
    draft.line(f"pixel = {number} * {image.stride('N')} + {rows}{group}")
    filter_group = f" + batch * {found.columns * filters.stride('O')}" if found.batch > 1 else ""
    draft.line(f"filter = {tile.column.name} * {filters.stride('O')}{filter_group}")


def _taps(draft: Draft, found: Convolution, tile_k: int, side: str, axis: str) -> None:
    """Names for window row, window column and channel of this step, for one operand."""
    width = found.window.size[1]
    if _is_flat(found):
        tiled(draft, f"k{side}", found.depth, tile_k, f"step * {tile_k}", axis, whole=0)
        tap, channel = f"(k{side} // {found.channels})", f"k{side} % {found.channels}"
    else:
        blocks = ceil(found.channels / tile_k)
        tap = f"(step // {blocks})"
        channel = f"(step % {blocks} * {tile_k} + tl.arange(0, {tile_k})){axis}"
    draft.line(f"c{side} = {channel}")
    draft.line(f"y{side} = {tap} // {width} * {found.window.dilation[0]}")
    draft.line(f"x{side} = {tap} % {width} * {found.window.dilation[1]}")


def _tap_offset(found: Convolution, layout: Layout, side: str, channel: str) -> str:
    """The offset from the window's beginning; filters have no gaps between their taps."""
    y, x = f"y{side}", f"x{side}"
    if layout is found.filters:
        y, x = (
            f"({each} // {gap})" if gap > 1 else each
            for each, gap in zip((y, x), found.window.dilation, strict=True)
        )
    return f"{y} * {layout.stride('H')} + {x} * {layout.stride('W')} + c{side} * {layout.stride(channel)}"


def _within(draft: Draft, found: Convolution) -> str:
    """The mask of taps inside the image."""
    height, width = found.image.extent("H"), found.image.extent("W")
    rows = f"(top + ya >= 0) & (top + ya < {height})"
    return draft.named(f"{rows} & (left + xa >= 0) & (left + xa < {width})")


def _channel_mask(found: Convolution, tile_k: int, side: str) -> str:
    if _is_flat(found):
        return f"k{side}_ok"
    return f"(c{side} < {found.channels})" if found.channels % tile_k else ""


def loaded(draft: Draft, value: int, where: str, masks: list[str]) -> str:
    """Name what is at a place of an input; zero where one of the masks does not hold."""
    valid = " & ".join(each if each.isidentifier() else f"({each})" for each in masks if each)
    mask = f", mask={valid}, other=0.0" if valid else ""
    return draft.named(f"tl.load(input{value} + {where}{mask})")


CONVOLUTIONS = Template(name="convolution", space=_space, refusal=_refusal, program=_program)
