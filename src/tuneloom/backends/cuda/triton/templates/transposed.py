"""Transposed convolutions as implicit products: a product for each place of an output between two inputs.

Output row `q * stride + r` reads taps `(r + padding) % stride + stride * j` from input rows
`q + (r + padding) // stride - j`: no zeros are inserted, and no tap is read in vain.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices, Template, Unfit
from tuneloom.backends.cuda.triton.coordinates import Coordinate, Place, Variable, regrouped, text_of
from tuneloom.backends.cuda.triton.programs import TritonProgram
from tuneloom.backends.cuda.triton.templates.convolutions import loaded
from tuneloom.backends.cuda.triton.templates.images import Layout, SlidingWindow
from tuneloom.backends.cuda.triton.templates.matrices import Tile, finished, matrix_space, refused
from tuneloom.backends.cuda.triton.templates.tiles import dot, precisions_of
from tuneloom.backends.cuda.triton.writing import Draft
from tuneloom.backends.meaning import Meaning, MeaningStep

_OPERATORS = frozenset(("relax.nn.conv1d_transpose", "relax.nn.conv2d_transpose"))


@dataclass(frozen=True, slots=True)
class TransposedConvolution:
    """A transposed convolution in a meaning; `batch` are the places of an output between two inputs."""

    meaning: Meaning
    value: int
    step: MeaningStep
    dtype: str
    image: Layout
    filters: Layout
    result: Layout
    window: SlidingWindow

    @property
    def batch(self) -> int:
        return self.window.strides[0] * self.window.strides[1]

    @property
    def quotients(self) -> tuple[int, int, int]:
        """Images, and how many groups of output rows and columns each has."""
        rows, columns = (self.result.extent(a) // s for a, s in zip("HW", self.window.strides, strict=True))
        return self.result.extent("N"), rows, columns

    @property
    def rows(self) -> int:
        count, rows, columns = self.quotients
        return count * rows * columns

    @property
    def columns(self) -> int:
        return self.result.extent("C")

    @property
    def channels(self) -> int:
        """How many channels the image has."""
        return self.image.extent("C")

    @property
    def taps(self) -> tuple[int, int]:
        """How many taps of a filter meet one output, at most."""
        high, wide = (ceil(k / s) for k, s in zip(self.window.size, self.window.strides, strict=True))
        return high, wide

    @property
    def depth(self) -> int:
        """How many products make one sum."""
        return self.taps[0] * self.taps[1] * self.channels

    def parts(self, batch: Variable, row: Variable) -> tuple[Place, Place]:
        """Place between two inputs; image and group of rows and columns."""
        between = regrouped((batch.whole(),), self.window.strides)
        groups = regrouped((row.whole(),), self.quotients)
        if between is None or groups is None:
            raise Unfit("pixels that can't be taken apart")
        return between, groups

    def place(self, batch: Variable, row: Variable, column: Variable) -> Place:
        """Where an element of the result lies."""
        between, (number, high, wide) = self.parts(batch, row)
        joined = [Coordinate((*q.digits, *r.digits)) for q, r in zip((high, wide), between, strict=True)]
        where = dict(zip("NHWC", (number, *joined, column.whole()), strict=True))
        return tuple(where[letter] for letter in self.result.letters)


def transposed_of(meaning: Meaning, gpu: Gpu) -> TransposedConvolution | None:
    """The transposed convolution of a meaning that has exactly one, if the GPU multiplies its type."""
    found = _found(meaning)
    return found if found is not None and gpu.computes(found.dtype) else None


@lru_cache(maxsize=256)
def _found(meaning: Meaning) -> TransposedConvolution | None:
    steps = [
        (value, step)
        for value, step in enumerate(meaning.steps, len(meaning.inputs))
        if step.operator in _OPERATORS
    ]
    return _described(meaning, *steps[0]) if len(steps) == 1 else None


def _described(meaning: Meaning, value: int, step: MeaningStep) -> TransposedConvolution | None:
    first, second = (meaning.type_of(each) for each in step.operands)
    attributes = step.attributes
    letters = [attributes["data_layout"], attributes["kernel_layout"]]
    letters.append(attributes.get("out_layout") or letters[0])
    plain = all(each.isalpha() for each in letters) and all(
        each < len(meaning.inputs) for each in step.operands
    )
    if not plain or first.dtype != second.dtype or int(attributes["groups"]) != 1:
        return None
    shapes = (first.shape, second.shape, step.result.shape)
    image, filters, result = (Layout(each, shape) for each, shape in zip(letters, shapes, strict=True))
    window = SlidingWindow.of(step, (filters.extent("H"), filters.extent("W")))
    uneven = any(result.extent(a) % s for a, s in zip("HW", window.strides, strict=True))
    if uneven or window.dilation != (1, 1):
        return None
    return TransposedConvolution(meaning, value, step, first.dtype, image, filters, result, window)


def _space(meaning: Meaning, gpu: Gpu) -> KnobChoices | None:
    found = transposed_of(meaning, gpu)
    return None if found is None else matrix_space(found, gpu, precisions_of(found.step, found.dtype), {})


def _steps(found: TransposedConvolution, tile_k: int) -> int:
    return found.taps[0] * found.taps[1] * ceil(found.channels / tile_k)


def _refusal(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> str:
    found = transposed_of(meaning, gpu)
    assert found is not None
    if _steps(found, configuration["tile_k"]) < configuration["split"]:
        return f"can't be split in {configuration['split']}"
    return refused(found, gpu, configuration)


def _program(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> TritonProgram:
    found = transposed_of(meaning, gpu)
    if found is None:
        raise Unfit("not one transposed convolution")

    def write(draft: Draft, tile: Tile) -> None:
        _multiply(draft, found, tile, configuration)

    return finished("transposed", found, gpu, configuration, lambda draft: write)


def _multiply(draft: Draft, found: TransposedConvolution, tile: Tile, configuration: Configuration) -> None:
    """Write the loop over taps and input channels."""
    tile_k, image, filters = configuration["tile_k"], found.image, found.filters
    number = _bases(draft, found, tile)
    blocks, steps = ceil(found.channels / tile_k), _steps(found, tile_k)
    each = ceil(steps / tile.split)
    with draft.block(f"for part in range(0, {each}):"):
        draft.line(f"step = tl.program_id(2) * {each} + part" if tile.split > 1 else "step = part")
        over = f"step < {steps}" if each * tile.split > steps else ""
        for name, tap in (
            ("y", f"step // {blocks * found.taps[1]}"),
            ("x", f"step // {blocks} % {found.taps[1]}"),
        ):
            draft.line(f"{name}t = {name}_first + {tap} * {found.window.strides['yx'.index(name)]}")
            draft.line(f"{name}i = {name}_base - {tap}")
        draft.line(
            f"inside = (yi >= 0) & (yi < {image.extent('H')}) & (xi >= 0) & (xi < {image.extent('W')})"
        )
        wide = f"0 * {tile.column.name}"  # Triton's interpreter takes single truths in masks for numbers
        height, width = found.window.size
        draft.line(f"tapped = (yt + {wide} < {height}) & (xt + {wide} < {width})")
        for side, axis in (("a", "[None, :]"), ("b", "[:, None]")):
            draft.line(f"c{side} = (step % {blocks} * {tile_k} + tl.arange(0, {tile_k})){axis}")
        few = found.channels % tile_k
        pixel = f"{number} + yi * {image.stride('H')} + xi * {image.stride('W')} + ca * {image.stride('C')}"
        masks = [tile.row.mask, "inside", over, f"(ca < {found.channels})" if few else ""]
        left = loaded(draft, found.step.operands[0], pixel, masks)
        taps = f"yt * {filters.stride('H')} + xt * {filters.stride('W')}"
        weights = f"{taps} + cb * {filters.stride('I')} + {tile.column.name} * {filters.stride('O')}"
        masks = [tile.column.mask, "tapped", over, f"(cb < {found.channels})" if few else ""]
        right = loaded(draft, found.step.operands[1], weights, masks)
        sums = dot(left, right, "sums", found.dtype, configuration["precision"], configuration["tile_k"])
        draft.line(f"sums = {sums}")


def _bases(draft: Draft, found: TransposedConvolution, tile: Tile) -> str:
    """Names for the first tap and the input row and column that it meets; returns where the image begins."""
    between, (number, *groups) = found.parts(tile.batch, tile.row)
    for axis, name in enumerate("yx"):
        stride, before = found.window.strides[axis], found.window.before[axis]
        shifted = f"({text_of(between[axis])} + {before})"
        draft.line(f"{name}_first = {shifted} % {stride}")
        draft.line(f"{name}_base = {text_of(groups[axis])} + {shifted} // {stride}")
    return f"{text_of(number)} * {found.image.stride('N')}"


TRANSPOSED = Template(name="transposed", space=_space, refusal=_refusal, program=_program)
