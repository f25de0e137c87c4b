"""Elements that are looked up: parts of joined tensors, and rows of tables by their numbers."""

from collections.abc import Callable
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


GATHERS: dict[str, Gather] = {"relax.concat": _joined, "relax.take": _taken}
