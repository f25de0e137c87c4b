"""Depthwise convolutions and pools: every pixel's window is read once, channels side by side."""

from dataclasses import dataclass
from math import ceil

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices, Template, Unfit
from tuneloom.backends.cuda.triton.coordinates import Variable, text_of
from tuneloom.backends.cuda.triton.expressions import is_float
from tuneloom.backends.cuda.triton.programs import TritonProgram
from tuneloom.backends.cuda.triton.templates.images import (
    Layout,
    SlidingWindow,
    pixels,
    result_place,
)
from tuneloom.backends.cuda.triton.templates.tiles import tiled
from tuneloom.backends.cuda.triton.writing import Draft
from tuneloom.backends.meaning import Meaning, MeaningStep

_POOLS = {"relax.nn.max_pool2d": "max", "relax.nn.avg_pool2d": "mean"}
_CONVOLUTIONS = frozenset(("relax.nn.conv1d", "relax.nn.conv2d"))
_MOST_TAPS = 128
_MOST_A_THREAD = 32


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
    }
    inner = found.result.stride("C") == 1
    order = [
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
    guesses = [{"pixels": p, "channels": c, "warps": w} for p, c, w in pairs]
    guesses = [
        each
        for each in guesses
        if all(each[name] in values for name, values in knobs.items()) and not _refusal(meaning, gpu, each)
    ]
    return KnobChoices(knobs=knobs, guesses=tuple(guesses) or ({"pixels": 1, "channels": 1, "warps": 1},))


def _refusal(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> str:
    elements, threads = configuration["pixels"] * configuration["channels"], configuration["warps"] * 32
    if elements > _MOST_A_THREAD * threads or (elements < threads and configuration["warps"] > 1):
        return f"{threads} threads for {elements} elements"
    return ""


def _program(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> TritonProgram:
    found = _windowed(meaning)
    if found is None:
        raise Unfit("no window")
    draft, rows, columns = Draft(meaning), configuration["pixels"], configuration["channels"]
    pixel = tiled(draft, "m", found.count, rows, f"tl.program_id(0) * {rows}", "[:, None]")
    channel = tiled(draft, "n", found.channels, columns, f"tl.program_id(1) * {columns}", "[None, :]")
    draft.line(f"sums = tl.full(({rows}, {columns}), {_neutral(found)}, tl.float32)")
    _taps(draft, found, pixel, channel)
    draft.know(found.value, result_place(pixel, channel.whole(), found.result), "sums")
    draft.finish()
    grid = (ceil(found.count / rows), ceil(found.channels / columns), 1)
    return TritonProgram(kernels=(draft.text("window", grid, warps=configuration["warps"]),))


def _neutral(found: Windowed) -> str:
    return 'float("-inf")' if _POOLS.get(found.step.operator) == "max" else "0.0"


def _taps(draft: Draft, found: Windowed, pixel: Variable, channel: Variable) -> None:
    """Write out the window, tap by tap."""
    image, window = found.image, found.window
    number, row, column = (text_of(each) for each in pixels(pixel, found.result))
    draft.line(f"top = {row} * {window.strides[0]} - {window.before[0]}")
    draft.line(f"left = {column} * {window.strides[1]} - {window.before[1]}")
    place = f"{number} * {image.stride('N')} + top * {image.stride('H')} + left * {image.stride('W')}"
    draft.line(f"base = {place} + {channel.name} * {image.stride('C')}")
    inside = window.stays_inside(image, found.result)
    averaged = _POOLS.get(found.step.operator) == "mean"
    counts = averaged and not inside and not found.step.attributes.get("count_include_pad")
    if counts:
        draft.line(f"count = {pixel.name} * 0")
    for y in range(window.size[0]):
        for x in range(window.size[1]):
            within = "" if inside else _within(draft, found, y, x)
            _tap(draft, found, (y, x), [each for each in (pixel.mask, channel.mask, within) if each])
            if counts:
                draft.line(f"count += {within}.to(tl.int32)")
    if averaged:
        draft.line(
            "sums = sums / count" if counts else f"sums = sums / {float(window.size[0] * window.size[1])}"
        )


def _within(draft: Draft, found: Windowed, y: int, x: int) -> str:
    texts = []
    for name, letter, tap, axis in (("top", "H", y, 0), ("left", "W", x, 1)):
        at = f"{name} + {tap * found.window.dilation[axis]}"
        texts.append(f"({at} >= 0) & ({at} < {found.image.extent(letter)})")
    return draft.named(" & ".join(texts))


def _tap(draft: Draft, found: Windowed, tap: tuple[int, int], masks: list[str]) -> None:
    y, x = (number * gap for number, gap in zip(tap, found.window.dilation, strict=True))
    shift = y * found.image.stride("H") + x * found.image.stride("W")
    mask = f", mask={' & '.join(masks)}, other={_neutral(found)}" if masks else ""
    text = draft.named(f"tl.load(input{found.step.operands[0]} + base + {shift}{mask}).to(tl.float32)")
    if found.filters is None:
        how = _POOLS[found.step.operator]
        draft.line(f"sums = tl.maximum(sums, {text})" if how == "max" else f"sums += {text}")
        return
    channel = [each for each in masks if each == "n_ok"]
    mask = f", mask={channel[0]}, other=0.0" if channel else ""
    shift = tap[0] * found.filters.stride("H") + tap[1] * found.filters.stride("W")
    where = f"input{found.step.operands[1]} + n * {found.filters.stride('O')} + {shift}"
    draft.line(f"sums += {text} * tl.load({where}{mask}).to(tl.float32)")


WINDOWS = Template(name="window", space=_space, refusal=_refusal, program=_program)
