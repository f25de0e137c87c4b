"""Sums, means and extremes over many elements, such as all pixels: read in tiles, by several blocks."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices, Template, Unfit
from tuneloom.backends.cuda.triton.coordinates import Coordinate, Place, Variable, regrouped
from tuneloom.backends.cuda.triton.expressions import is_float
from tuneloom.backends.cuda.triton.programs import KernelText, TritonProgram
from tuneloom.backends.cuda.triton.templates.rows import SUMMED, reduced_axes
from tuneloom.backends.cuda.triton.templates.tiles import tiled
from tuneloom.backends.cuda.triton.writing import Draft
from tuneloom.backends.meaning import Meaning, MeaningStep, TensorType

_FEW = 4096
_MOST_A_THREAD = 64
_HOW = {
    "max": ("tl.maximum({}, {})", "max", 'float("-inf")'),
    "min": ("tl.minimum({}, {})", "min", 'float("inf")'),
}
_SUM = ("{} + {}", "sum", "0.0")


@dataclass(frozen=True, slots=True)
class Pooled:
    """A reduction in a meaning: `count` results of `length` elements each."""

    meaning: Meaning
    value: int
    step: MeaningStep
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    count: int
    length: int

    @property
    def how(self) -> tuple[str, str, str]:
        """How two elements are joined, how a tile is, and what changes nothing."""
        return _HOW.get(self.step.operator.removeprefix("relax."), _SUM)

    def operand(self, row: Variable, inner: Variable) -> Place:
        """Where an element of a row lies."""
        kept = regrouped((row.whole(),), [e for axis, e in enumerate(self.shape) if axis not in self.axes])
        along = regrouped((inner.whole(),), [self.shape[axis] for axis in self.axes])
        if kept is None or along is None:
            raise Unfit("rows that can't be taken apart")
        outer, inside = iter(kept), iter(along)
        return tuple(next(inside) if axis in self.axes else next(outer) for axis in range(len(self.shape)))

    def result(self, row: Variable) -> Place:
        """Where the result of a row lies."""
        place = regrouped((row.whole(),), self.step.result.shape)
        if place is None:
            raise Unfit("a result that can't be taken apart")
        return place


@lru_cache(maxsize=256)
def _pooled(meaning: Meaning) -> Pooled | None:
    """The only reduction of a meaning, where it is long or its elements are apart."""
    found = [
        (value, one) for value, one in enumerate(meaning.steps, len(meaning.inputs)) if one.operator in SUMMED
    ]
    if len(found) != 1:
        return None
    value, step = found[0]
    tensor = meaning.type_of(step.operands[0])
    axes = reduced_axes(step, tensor.shape)
    length = prod(tensor.shape[axis] for axis in axes)
    apart = len(tensor.shape) - 1 not in axes
    if not is_float(tensor.dtype) or length < 2 or not (apart or length > _FEW):
        return None
    return Pooled(meaning, value, step, tensor.shape, axes, prod(tensor.shape) // length, length)


def _space(meaning: Meaning, gpu: Gpu) -> KnobChoices | None:
    found = _pooled(meaning)
    if found is None:
        return None
    knobs = {
        "rows": tuple(each for each in (1, 2, 4, 8, 16, 32, 64, 128) if each < 2 * found.count),
        "tile": tuple(each for each in (4, 8, 16, 32, 64, 128, 256, 512, 1024) if each < 2 * found.length),
        "warps": (1, 2, 4, 8),
        "split": tuple(each for each in (1, 2, 4, 8, 16, 32, 64) if each == 1 or each * 8 <= found.length),
    }
    apart = len(found.shape) - 1 not in found.axes
    sizes = [(64, 16, 4), (32, 32, 4), (64, 32, 8), (32, 16, 4), (16, 16, 2), (128, 8, 4)]
    sizes = sizes if apart else [(1, 1024, 4), (2, 512, 4), (1, 512, 2), (4, 256, 4), (8, 128, 4)]
    guesses = [
        {
            "rows": min(rows, knobs["rows"][-1]),
            "tile": min(tile, knobs["tile"][-1]),
            "warps": warps,
            "split": split,
        }
        for rows, tile, warps in sizes
        for split in _splits(found, gpu, rows, knobs["split"])
    ]
    guesses = [
        each for n, each in enumerate(guesses) if each not in guesses[:n] and not _refusal(meaning, gpu, each)
    ]
    return KnobChoices(
        knobs=knobs, guesses=tuple(guesses) or ({"rows": 1, "tile": 4, "warps": 1, "split": 1},)
    )


def _splits(found: Pooled, gpu: Gpu, rows: int, splits: tuple[int, ...]) -> list[int]:
    """One block for all elements of some rows, and as many as the GPU runs side by side."""
    wanted = gpu.multiprocessors / ceil(found.count / rows)
    wide = max((each for each in splits if each <= wanted), default=1)
    return [wide, 1] if wide > 1 else [1]


def _refusal(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> str:
    found = _pooled(meaning)
    assert found is not None
    elements, threads = configuration["rows"] * configuration["tile"], configuration["warps"] * 32
    if not threads // 2 <= elements <= _MOST_A_THREAD * threads:
        return f"{threads} threads for {elements} elements"
    if configuration["split"] > ceil(found.length / configuration["tile"]):
        return f"{found.length} elements can't be split in {configuration['split']}"
    return ""


def _program(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> TritonProgram:
    found = _pooled(meaning)
    if found is None:
        raise Unfit("not one reduction")
    rows, split = configuration["rows"], configuration["split"]
    blocks = ceil(found.count / rows)
    draft = Draft(meaning, scratch=("float32",) if split > 1 else ())
    row = tiled(draft, "x", found.count, rows, f"tl.program_id(0) * {rows}", "[:, None]")
    total = _folded(draft, found, row, configuration)
    if split == 1:
        _finish(draft, found, row, total)
        return TritonProgram(kernels=(draft.text("sum", (blocks, 1, 1), warps=configuration["warps"]),))
    partial = TensorType(shape=(split, found.count), dtype="float32")
    draft.write("scratch0", partial, (Variable("tl.program_id(1)", split).whole(), row.whole()), total)
    kernel = draft.text("parts", (blocks, split, 1), warps=configuration["warps"])
    return TritonProgram(kernels=(kernel, _joined(found, partial)), scratch=(partial,))


def _folded(draft: Draft, found: Pooled, row: Variable, configuration: Configuration) -> str:
    """Write the loop over this block's part of a row; returns the name of what is left of it."""
    joined, fold, nothing = found.how
    rows, tile, split = (configuration[name] for name in ("rows", "tile", "split"))
    each = ceil(ceil(found.length / tile) / split)
    draft.line(f"sums = tl.full(({rows}, {tile}), {nothing}, tl.float32)")
    with draft.block(f"for step in range(0, {each}):"):
        first = f"(tl.program_id(1) * {each} + step)" if split > 1 else "step"
        inner = tiled(draft, "r", found.length, tile, f"{first} * {tile}", "[None, :]", each * split * tile)
        text = draft.read(found.step.operands[0], found.operand(row, inner))
        valid = " & ".join(filter(None, (row.mask, inner.mask)))
        taken = f"tl.where({valid}, {text}, {nothing})" if valid else text
        draft.line(f"sums = {joined.format('sums', taken)}")
    return draft.named(f"tl.{fold}(sums, axis=1)[:, None]")


def _finish(draft: Draft, found: Pooled, row: Variable, total: str) -> None:
    scaled = f"{total} * {1.0 / found.length!r}" if found.step.operator == "relax.mean" else total
    draft.know(found.value, found.result(row), draft.named(scaled))
    draft.finish()


def _joined(found: Pooled, partial: TensorType) -> KernelText:
    """The kernel that joins parts and computes what follows."""
    draft, tile = Draft(found.meaning, scratch=("float32",)), 128
    row = tiled(draft, "x", found.count, tile, f"tl.program_id(0) * {tile}", "[:, None]")
    texts = [
        draft.load("scratch0", partial, (Coordinate(shift=part), row.whole()))
        for part in range(partial.shape[0])
    ]
    total = texts[0]
    for text in texts[1:]:
        total = draft.named(found.how[0].format(total, text))
    _finish(draft, found, row, total)
    return draft.text("joined", (ceil(found.count / tile), 1, 1), warps=4)


SUMS = Template(name="sum", space=_space, refusal=_refusal, program=_program)
