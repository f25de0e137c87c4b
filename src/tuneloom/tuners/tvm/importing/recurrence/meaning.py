"""What a recurrent kernel computes, for those who make code for it from its meaning."""

from collections.abc import Sequence

from tuneloom.backends.meaning import Meaning, MeaningStep, TensorType
from tuneloom.tuners.tvm.importing.recurrence.cells import Cell

_USUAL = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh")}


def meaning_of(cells: Sequence[Cell]) -> Meaning | None:
    """The meaning of usual LSTMs or GRUs side by side, with a step for each result; None of other cells."""
    if not cells or not all(map(_is_usual, cells)):
        return None
    inputs = [tensor for cell in cells for name, tensor in _types(cell).items() if name not in cell.results]
    each = len(inputs) // len(cells)
    steps = tuple(
        MeaningStep(
            operator=f"tuneloom.{cell.kind.lower()}",
            operands=tuple(range(place * each, (place + 1) * each)),
            attributes={"width": cell.width, "backwards": cell.backwards, "result": number},
            result=_types(cell)[name],
        )
        for place, cell in enumerate(cells)
        for number, name in enumerate(cell.results)
    )
    outputs = tuple(range(len(inputs), len(inputs) + len(steps)))
    return Meaning(inputs=tuple(inputs), steps=steps, outputs=outputs)


def _is_usual(cell: Cell) -> bool:
    names = tuple(one.name.lower() for one in cell.activations)
    options = (
        cell.masked
        or cell.clip
        or cell.peepholes
        or cell.coupled
        or (cell.kind == "GRU" and not cell.reset_after)
    )
    return _USUAL.get(cell.kind) == names and not options


def _types(cell: Cell) -> dict[str, TensorType]:
    return {
        name: TensorType(shape=shape, dtype="int32" if name == "lengths" else "float32")
        for name, shape in cell.arguments.items()
    }


def steps_of(meaning: Meaning) -> int:
    """How many steps a recurrent kernel goes; 0 for any other."""
    first = meaning.steps[0] if meaning.steps else None
    own = first is not None and first.operator.startswith("tuneloom.")
    return first.result.shape[0] if first is not None and own else 0
