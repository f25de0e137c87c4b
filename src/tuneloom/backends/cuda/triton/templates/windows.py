"""Depthwise convolutions and pools: every pixel's window is read once, channels side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices, Template, Unfit
from tuneloom.backends.cuda.triton.coordinates import Coordinate, Place, Variable, regrouped, text_of
from tuneloom.backends.cuda.triton.expressions import is_float
from tuneloom.backends.cuda.triton.programs import TritonProgram
from tuneloom.backends.cuda.triton.templates.images import Layout, SlidingWindow
from tuneloom.backends.cuda.triton.templates.tiles import tiled
from tuneloom.backends.cuda.triton.writing import Draft
from tuneloom.backends.meaning import VIEWS, Meaning, MeaningStep

_POOLS = {"relax.nn.max_pool2d": "max", "relax.nn.avg_pool2d": "mean"}
_CONVOLUTIONS = frozenset(("relax.nn.conv1d", "relax.nn.conv2d"))
_MOST_TAPS = 128
_MOST_WRITTEN_OUT = 256
"""Taps of all pixels of a thread: more take long to compile."""
_MANY_TAPS = 25
"""So large windows of neighbouring pixels overlap more than small ones: a block takes more of them."""
_THREADS = 512
"""How many elements at least a multiprocessor should have at a time."""
_MOST_A_THREAD = 64


@dataclass(frozen=True, slots=True)
class Windowed:
    """A depthwise convolution (`filters` is its weight's layout) or a pool in a meaning."""

    meaning: Meaning
    value: int
    step: MeaningStep
    image: Layout
    result: Layout
    window: SlidingWindow
    filters: Layout | None

    @property
    def count(self) -> int:
        """How many pixels the result has."""
        return self.result.extent("N") * self.result.extent("H") * self.result.extent("W")

    @property
    def channels(self) -> int:
        """How many channels it has."""
        return self.result.extent("C")


def _windowed(meaning: Meaning) -> Windowed | None:
    for value, step in enumerate(meaning.steps, len(meaning.inputs)):
        if step.operator in _CONVOLUTIONS or step.operator in _POOLS:
            found = _described(meaning, value, step)
            fits = found is not None and found.window.size[0] * found.window.size[1] <= _MOST_TAPS
            return found if fits else None
    return None


def _described(meaning: Meaning, value: int, step: MeaningStep) -> Windowed | None:
    attributes, pool = step.attributes, step.operator in _POOLS
    tensor = meaning.type_of(step.operands[0])
    letters = str(attributes["layout" if pool else "data_layout"])
    plain = letters.isalpha() and (attributes.get("out_layout") or letters) == letters
    if not plain or any(each >= len(meaning.inputs) for each in step.operands) or not is_float(tensor.dtype):
        return None
    image, result = Layout(letters, tensor.shape), Layout(letters, step.result.shape)
    if pool:
        strange = attributes.get("ceil_mode") and attributes.get("count_include_pad")
        size = tuple(attributes["pool_size"])
        window = SlidingWindow.of(step, (size[0], size[1]))
        return None if strange else Windowed(meaning, value, step, image, result, window, None)
    filters = Layout(str(attributes["kernel_layout"]), meaning.type_of(step.operands[1]).shape)
    if (
        not int(attributes["groups"]) == image.extent("C") == result.extent("C") > 1
        or not filters.letters.isalpha()
    ):
        return None
    window = SlidingWindow.of(step, (filters.extent("H"), filters.extent("W")))
    return Windowed(meaning, value, step, image, result, window, filters)


def _space(meaning: Meaning, gpu: Gpu) -> KnobChoices | None:
    found = _windowed(meaning)
    if found is None:
        return None
    powers = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    knobs = {
        "pixels": tuple(each for each in powers if each < 2 * found.count),
        "channels": tuple(each for each in powers if each < 2 * found.channels),
        "warps": (1, 2, 4, 8),
        "across": _widths(found),
    }
    inner = found.result.stride("C") == 1
    order = [(8, 32, 4)] if found.window.size[0] * found.window.size[1] >= _MANY_TAPS else []
    order += [
        (4, 64, 4),
        (8, 32, 4),
        (2, 128, 4),
        (1, 128, 2),
        (8, 64, 4),
        (16, 32, 4),
        (1, 64, 1),
        (4, 32, 2),
    ]
    order += [(32, 16, 4), (4, 128, 4), (16, 8, 2), (64, 4, 4), (128, 1, 4)]
    pairs = [(p, c, w) if inner else (c, p, w) for p, c, w in order]
    guesses = [
        {"pixels": p, "channels": c, "warps": w, "across": across}
        for p, c, w in dict.fromkeys(pairs)
        for across in _likely_widths(found, gpu)
    ]
    guesses = [
        each
        for each in guesses
        if all(each[name] in values for name, values in knobs.items()) and not _refusal(meaning, gpu, each)
    ]
    alone = {"pixels": 1, "channels": 1, "warps": 1, "across": 1}
    return KnobChoices(knobs=knobs, guesses=tuple(guesses) or (alone,))


def _widths(found: Windowed) -> tuple[int, ...]:
    """How many pixels of a row a thread may take; views behind the window would have to divide them."""
    behind = found.meaning.steps[found.value - len(found.meaning.inputs) + 1 :]
    if any(step.operator in VIEWS for step in behind) or found.result.stride("C") != 1:
        return (1,)
    taps = found.window.size[0] * found.window.size[1]
    return tuple(
        each
        for each in (1, 2, 4, 7, 8)
        if found.result.extent("W") % each == 0 and each <= max(1, _MOST_WRITTEN_OUT // taps)
    )


def _likely_widths(found: Windowed, gpu: Gpu) -> list[int]:
    """The most that leave every multiprocessor enough threads, and the next."""
    each = found.count * found.channels / (_THREADS * gpu.multiprocessors)
    widths = [] if found.window.size[1] == 1 else _widths(found)
    few = [width for width in widths if width <= max(each, 1)]
    return [*few[-1:], *widths[len(few) : len(few) + 1]] or [1]


def _refusal(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> str:
    elements, threads = configuration["pixels"] * configuration["channels"], configuration["warps"] * 32
    most = _MOST_A_THREAD * threads
    if elements * configuration["across"] > most or (elements < threads and configuration["warps"] > 1):
        return f"{threads} threads for {elements} elements"
    return ""


def _program(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> TritonProgram:
    found = _windowed(meaning)
    if found is None:
        raise Unfit("no window")
    draft, rows, columns = Draft(meaning), configuration["pixels"], configuration["channels"]
    across = configuration["across"]
    count = found.count // across
    pixel = tiled(draft, "m", count, rows, f"tl.program_id(0) * {rows}", "[:, None]")
    channel = tiled(draft, "n", found.channels, columns, f"tl.program_id(1) * {columns}", "[None, :]")
    parts = _divided(pixel, found, across)
    for number in range(across):
        draft.line(f"sums{number} = tl.full(({rows}, {columns}), {_neutral(found)}, tl.float32)")
    _Taps(draft, found, channel, across, [each for each in (pixel.mask, channel.mask) if each]).write(parts)
    for number in range(across):
        column = Coordinate(parts[2].digits, across, number)
        place = dict(zip("NHWC", (*parts[:2], column, channel.whole()), strict=True))
        draft.know(found.value, tuple(place[letter] for letter in found.result.letters), f"sums{number}")
        draft.finish()
        draft.forget_all()
    grid = (ceil(count / rows), ceil(found.channels / columns), 1)
    return TritonProgram(kernels=(draft.text("window", grid, warps=configuration["warps"]),))


def _divided(pixel: Variable, found: Windowed, across: int) -> Place:
    """Batch, row and number of the group of columns that a variable counts."""
    extents = [found.result.extent("N"), found.result.extent("H"), found.result.extent("W") // across]
    place = regrouped((pixel.whole(),), extents)
    if place is None:
        raise Unfit("pixels that can't be taken apart")
    return place


def _neutral(found: Windowed) -> str:
    return 'float("-inf")' if _POOLS.get(found.step.operator) == "max" else "0.0"


class _Taps:
    """Writes out a window, tap by tap, for neighbouring pixels of a row, which share what they read."""

    def __init__(
        self, draft: Draft, found: Windowed, channel: Variable, across: int, masks: Sequence[str]
    ) -> None:
        self._draft, self._found, self._channel = draft, found, channel
        self._across, self._masks = across, masks
        self._inside = found.window.stays_inside(found.image, found.result)
        self._averaged = _POOLS.get(found.step.operator) == "mean"
        own = found.step.attributes.get("count_include_pad")
        self._counts = self._averaged and not self._inside and not own

    def write(self, parts: Place) -> None:
        """Add all taps to the sums of the pixels, of which the first is at `parts`."""
        draft, image, window = self._draft, self._found.image, self._found.window
        number, row, column = (text_of(each) for each in parts)
        draft.line(f"top = {row} * {window.strides[0]} - {window.before[0]}")
        draft.line(f"left = {column} * {self._across * window.strides[1]} - {window.before[1]}")
        place = f"{number} * {image.stride('N')} + top * {image.stride('H')} + left * {image.stride('W')}"
        draft.line(f"base = {place} + {self._channel.name} * {image.stride('C')}")
        if self._counts:
            for each in range(self._across):
                draft.line(f"count{each} = top * 0")
        columns = {at: self._within("left", "W", at) for at in self._columns()}
        for y in range(window.size[0]):
            self._row(y, columns)
        if self._averaged:
            self._divide()

    def _columns(self) -> dict[int, list[tuple[int, int]]]:
        """Columns of the image from the left, with the pixels and the taps that read each."""
        window, found = self._found.window, dict[int, list[tuple[int, int]]]()
        for pixel in range(self._across):
            for x in range(window.size[1]):
                found.setdefault(pixel * window.strides[1] + x * window.dilation[1], []).append((pixel, x))
        return dict(sorted(found.items()))

    def _row(self, y: int, columns: Mapping[int, str]) -> None:
        window, image = self._found.window, self._found.image
        down = y * window.dilation[0]
        inside = self._within("top", "H", down)
        weights = [self._weight(y, x) for x in range(window.size[1])]
        for at, readers in self._columns().items():
            valid = self._draft.named(f"{inside} & {columns[at]}") if inside else ""
            text = self._loaded(down * image.stride("H") + at * image.stride("W"), valid)
            for pixel, x in readers:
                self._add(pixel, text, weights[x])
                if self._counts:
                    self._draft.line(f"count{pixel} += {valid}.to(tl.int32)")

    def _within(self, name: str, letter: str, at: int) -> str:
        """The name of what says whether a row or column is in the image; nothing if all are."""
        if self._inside:
            return ""
        return self._draft.named(
            f"({name} + {at} >= 0) & ({name} + {at} < {self._found.image.extent(letter)})"
        )

    def _loaded(self, shift: int, valid: str) -> str:
        masks = [*self._masks, *([valid] if valid else [])]
        mask = f", mask={' & '.join(masks)}, other={_neutral(self._found)}" if masks else ""
        image = f"input{self._found.step.operands[0]}"
        return self._draft.named(f"tl.load({image} + base + {shift}{mask}).to(tl.float32)")

    def _weight(self, y: int, x: int) -> str:
        filters = self._found.filters
        if filters is None:
            return ""
        mask = f", mask={self._channel.mask}, other=0.0" if self._channel.mask else ""
        shift = y * filters.stride("H") + x * filters.stride("W")
        where = f"input{self._found.step.operands[1]} + n * {filters.stride('O')} + {shift}"
        return self._draft.named(f"tl.load({where}{mask}).to(tl.float32)")

    def _add(self, pixel: int, text: str, weight: str) -> None:
        sums = f"sums{pixel}"
        if weight:
            self._draft.line(f"{sums} += {text} * {weight}")
        elif self._averaged:
            self._draft.line(f"{sums} += {text}")
        else:
            self._draft.line(f"{sums} = tl.maximum({sums}, {text})")

    def _divide(self) -> None:
        size = float(self._found.window.size[0] * self._found.window.size[1])
        for pixel in range(self._across):
            by = f"count{pixel}" if self._counts else str(size)
            self._draft.line(f"sums{pixel} = sums{pixel} / {by}")


WINDOWS = Template(name="window", space=_space, refusal=_refusal, program=_program, added={"across": 1})
