"""Elements that are looked up: parts of joined tensors, and rows of tables by their numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from tuneloom.backends.cuda.triton.claims import Unfit
from tuneloom.backends.cuda.triton.coordinates import Coordinate, Digit, Place, Variable, masks, text_of
from tuneloom.backends.meaning import Meaning, MeaningStep


class Reader(Protocol):
    """A kernel being written, as far as looking up needs it."""

    meaning: Meaning
    conditions: list[str]

    def read(self, value: int, place: Place) -> str: ...

    def named(self, text: str) -> str: ...


Gather = Callable[[Reader, int, MeaningStep, Place], str]


def _joined(draft: Reader, value: int, step: MeaningStep, place: Place) -> str:
    """The element of whichever part it is in; the others are not read."""
    axis = (step.attributes.get("axis") or 0) % len(place)
    sizes = [draft.meaning.type_of(each).shape[axis] for each in step.operands]
    at, begins = place[axis], [0, *accumulate(sizes)]
    number = draft.named(text_of(at))
    result = ""
    for part, operand in reversed(list(enumerate(step.operands))):
        low, high = begins[part], begins[part + 1]
        inside = draft.named(f"({number} >= {low}) & ({number} < {high})")
        moved = Coordinate(at.digits, at.scale, at.shift - low) if high > low + 1 else Coordinate()
        draft.conditions.append(inside)
        text = draft.read(operand, (*place[:axis], moved, *place[axis + 1 :]))
        draft.conditions.pop()
        result = draft.named(f"tl.where({inside}, {text}, {result})") if result else text
    return result


def _taken(draft: Reader, value: int, step: MeaningStep, place: Place) -> str:
    """The element of a table whose place along one axis is a number in a tensor."""
    table, numbers = (draft.meaning.type_of(each) for each in step.operands)
    axis = step.attributes.get("axis")
    if axis is None or "int" not in numbers.dtype:
        raise Unfit("elements of a table without an axis")
    axis %= len(table.shape)
    inner = place[axis : axis + len(numbers.shape)]
    number = draft.read(step.operands[1], inner)
    last = table.shape[axis] - 1
    row = Variable(draft.named(f"tl.minimum(tl.maximum({number}, 0), {last})"), last + 1)
    found = Coordinate((Digit(row, 1, last + 1),))
    valid = masks(inner)
    draft.conditions += valid
    text = draft.read(step.operands[0], (*place[:axis], found, *place[axis + len(numbers.shape) :]))
    del draft.conditions[len(draft.conditions) - len(valid) :]
    return text


@dataclass(frozen=True, slots=True)
class Roll:
    """Elements of an axis moved round: element `n` is element `(n + shift) % extent` of `source`."""

    source: int
    axis: int
    shift: int
    extent: int


def rolled(meaning: Meaning, step: MeaningStep) -> Roll | None:
    """The roll that the end of a tensor joined with its beginning is; None for anything else."""
    parts = [meaning.step_of(each) for each in step.operands] if step.operator == "relax.concat" else []
    found = [each for each in parts if each is not None and each.operator == "relax.strided_slice"]
    if len(parts) != 2 or len(found) != 2 or found[0].operands != found[1].operands:
        return None
    axis = (step.attributes.get("axis") or 0) % len(step.result.shape)
    source = found[0].operands[0]
    extent = meaning.type_of(source).shape[axis]
    shift = found[0].attributes["begin"][0]
    bounds = [(one.attributes["axes"], one.attributes["begin"], one.attributes["end"]) for one in found]
    if bounds != [([axis], [shift], [extent]), ([axis], [0], [shift])] or not 0 < shift < extent:
        return None
    if any(set(one.attributes.get("strides") or [1]) != {1} for one in found):
        return None
    return Roll(source, axis, shift, extent)


GATHERS: dict[str, Gather] = {"relax.concat": _joined, "relax.take": _taken}
