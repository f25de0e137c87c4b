"""Softmax, norms and reductions in one pass: blocks of rows are read once and stay in registers."""

from dataclasses import dataclass
from math import ceil, prod

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices, Template, Unfit
from tuneloom.backends.cuda.triton.coordinates import Place, Variable, regrouped
from tuneloom.backends.cuda.triton.expressions import is_float
from tuneloom.backends.cuda.triton.programs import TritonProgram
from tuneloom.backends.cuda.triton.templates.tiles import tiled
from tuneloom.backends.cuda.triton.writing import Draft
from tuneloom.backends.meaning import Meaning, MeaningStep

_ALONG = frozenset(f"relax.nn.{name}" for name in ("softmax", "log_softmax", "layer_norm", "rms_norm"))
SUMMED = frozenset(f"relax.{name}" for name in ("sum", "mean", "max", "min"))
_LONGEST = 32768
_MOST_A_THREAD = 128
_LOWEST, _HIGHEST = 'float("-inf")', 'float("inf")'


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` rows of `length` elements: `axes` of a tensor of `shape` are the row."""

    count: int
    length: int
    shape: tuple[int, ...]
    axes: tuple[int, ...]


def reduced_axes(step: MeaningStep, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that a softmax, norm or reduction works along, counted from the front."""
    axes = step.attributes.get("axes", step.attributes.get("axis", -1 if step.operator in _ALONG else None))
    every = range(len(shape)) if axes is None else ([axes] if isinstance(axes, int) else axes)
    return tuple(sorted(axis % len(shape) for axis in every))


def _rows_of(meaning: Meaning) -> Rows | None:
    for step in meaning.steps:
        if step.operator in _ALONG | SUMMED:
            shape = meaning.type_of(step.operands[0]).shape
            axes = reduced_axes(step, shape)
            length = prod(shape[axis] for axis in axes)
            return Rows(prod(shape) // length, length, shape, axes) if length else None
    return None


def _space(meaning: Meaning, gpu: Gpu) -> KnobChoices | None:
    found = _rows_of(meaning)
    if found is None or found.length > _LONGEST or found.length < 2:
        return None
    knobs = {
        "rows": tuple(each for each in (1, 2, 4, 8, 16, 32, 64) if each < 2 * found.count),
        "warps": (1, 2, 4, 8, 16),
    }
    padded = _padded(found.length)
    guesses = [
        {"rows": rows, "warps": warps}
        for rows, warps in (
            (1, 4),
            (1, 2),
            (1, 1),
            (2, 4),
            (4, 4),
            (1, 8),
            (8, 4),
            (4, 8),
            (16, 8),
            (1, 16),
            (32, 4),
        )
        if rows in knobs["rows"]
    ]
    guesses = [each for each in guesses if not _refusal(meaning, gpu, each)]
    guesses.sort(key=lambda each: abs(each["rows"] * padded / (each["warps"] * 32) - 8))
    return KnobChoices(knobs=knobs, guesses=tuple(guesses))


def _padded(length: int) -> int:
    return 1 << (length - 1).bit_length()


def _refusal(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> str:
    found = _rows_of(meaning)
    assert found is not None
    elements = configuration["rows"] * _padded(found.length)
    threads = configuration["warps"] * 32
    if elements > _MOST_A_THREAD * threads:
        return f"{elements} elements don't fit into the registers of {threads} threads"
    return f"{threads} threads for {elements} elements" if elements * 2 < threads else ""


class _RowWriter:
    """Writes the operators that work along rows."""

    def __init__(self, draft: Draft, found: Rows, row: Variable, inner: Variable) -> None:
        self._draft, self._found = draft, found
        self._row, self._inner = row, inner
        for operator in SUMMED:
            draft.operators[operator] = self._reduced
        forms = {"softmax": self._softmax, "log_softmax": self._softmax}
        forms |= {"layer_norm": self._norm, "rms_norm": self._norm}
        for name, write in forms.items():
            draft.operators[f"relax.nn.{name}"] = write

    def whole(self) -> Place:
        """The place of an element of the rows."""
        axes, shape = self._found.axes, self._found.shape
        kept = regrouped((self._row.whole(),), [e for axis, e in enumerate(shape) if axis not in axes])
        along = regrouped((self._inner.whole(),), [shape[axis] for axis in axes])
        if kept is None or along is None:
            raise Unfit("rows that can't be taken apart")
        outer, inner = iter(kept), iter(along)
        return tuple(next(inner) if axis in axes else next(outer) for axis in range(len(shape)))

    def place(self, shape: tuple[int, ...]) -> Place:
        """The place of an output: over whole rows, or one element a row."""
        variables = self.whole() if prod(shape) == self._found.count * self._found.length else ()
        found = regrouped(variables or (self._row.whole(),), shape)
        if found is None or prod(shape) not in (self._found.count, self._found.count * self._found.length):
            raise Unfit(f"an output of shape {shape}")
        return found

    def _operand(self, value: int, place: Place) -> tuple[MeaningStep, Place]:
        """A step along rows with the place of its first operand."""
        step = self._draft.meaning.step_of(value)
        assert step is not None
        shape = self._draft.meaning.type_of(step.operands[0]).shape
        axes = reduced_axes(step, shape)
        along = regrouped((self._inner.whole(),), [shape[axis] for axis in axes])
        if along is None or prod(shape[axis] for axis in axes) != self._found.length:
            raise Unfit(f"{step.operator} along other axes")
        if not is_float(self._draft.meaning.type_of(step.operands[0]).dtype):
            raise Unfit(f"{step.operator} of whole numbers")
        inner = iter(along)
        if step.operator in SUMMED and not step.attributes.get("keepdims", False):
            outer = iter(place)
        else:
            outer = iter([each for axis, each in enumerate(place) if axis not in axes])
        full = tuple(next(inner) if axis in axes else next(outer) for axis in range(len(shape)))
        if any(
            digit.variable != self._row
            for a, each in enumerate(full)
            if a not in axes
            for digit in each.digits
        ):
            raise Unfit(f"{step.operator} inside of another")
        return step, full

    def _along(self, value: int, place: Place) -> tuple[MeaningStep, str]:
        step, full = self._operand(value, place)
        if step.operator not in SUMMED and full != place:
            raise Unfit(f"{step.operator} is read elsewhere")
        return step, self._draft.read(step.operands[0], full)

    def _fold(self, how: str, text: str, outside: str) -> str:
        valid = f"tl.where({self._inner.mask}, {text}, {outside})" if self._inner.mask else text
        return self._draft.named(f"tl.{how}({valid}, axis=1)[:, None]")

    def _reduced(self, value: int, place: Place) -> str:
        step, text = self._along(value, place)
        name = step.operator.removeprefix("relax.")
        how, outside = {"max": ("max", _LOWEST), "min": ("min", _HIGHEST)}.get(name, ("sum", "0.0"))
        folded = self._fold(how, text, outside)
        return self._draft.named(f"{folded} * {1.0 / self._found.length!r}") if name == "mean" else folded

    def _softmax(self, value: int, place: Place) -> str:
        step, text = self._along(value, place)
        low = self._draft.named(f"{text} - {self._fold('max', text, _LOWEST)}")
        raised = self._draft.named(f"tl.exp({low})")
        total = self._fold("sum", raised, "0.0")
        return self._draft.named(
            f"{low} - tl.log({total})" if "log" in step.operator else f"{raised} / {total}"
        )

    def _norm(self, value: int, place: Place) -> str:
        step, text = self._along(value, place)
        if self._found.axes[-1] != len(place) - 1:
            raise Unfit("a norm along inner axes")
        each = repr(1.0 / self._found.length)
        if step.operator == "relax.nn.layer_norm":
            text = self._draft.named(f"{text} - {self._fold('sum', text, '0.0')} * {each}")
        mean = f"{self._fold('sum', f'({text} * {text})', '0.0')} * {each}"
        text = self._draft.named(f"{text} * tl.rsqrt({mean} + {float(step.attributes['epsilon'])!r})")
        weights = [
            self._draft.read(each, place[len(place) - self._rank(each) :]) for each in step.operands[1:]
        ]
        for form, weight in zip(("{} * {}", "{} + {}"), weights, strict=False):
            text = self._draft.named(form.format(text, weight))
        return text

    def _rank(self, value: int) -> int:
        return len(self._draft.meaning.type_of(value).shape)


def _program(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> TritonProgram:
    found = _rows_of(meaning)
    if found is None:
        raise Unfit("nothing along rows")
    draft, rows = Draft(meaning, anywhere=True), configuration["rows"]
    row = tiled(draft, "x", found.count, rows, f"tl.program_id(0) * {rows}", "[:, None]")
    inner = tiled(draft, "r", found.length, _padded(found.length), "0", "[None, :]")
    writer = _RowWriter(draft, found, row, inner)
    for number, value in enumerate(meaning.outputs):
        place = writer.place(meaning.type_of(value).shape)
        draft.store(number, place, draft.read(value, place))
    grid = (ceil(found.count / rows), 1, 1)
    return TritonProgram(kernels=(draft.text("rows", grid, warps=configuration["warps"]),))


ROWS = Template(name="rows", space=_space, refusal=_refusal, program=_program)
