"""What a recurrent kernel computes, for those who make code for it from its meaning."""

from tuneloom.backends.meaning import Meaning, MeaningStep, TensorType
from tuneloom.tuners.tvm.importing.recurrence.cells import Cell

_USUAL = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh")}


def meaning_of(cell: Cell) -> Meaning | None:
    """The meaning of a usual LSTM or GRU, with a step for each result; None of other cells."""
    names = tuple(one.name.lower() for one in cell.activations)
    options = cell.clip or cell.peepholes or cell.coupled or (cell.kind == "GRU" and not cell.reset_after)
    if _USUAL.get(cell.kind) != names or options:
        return None
    types = {
        name: TensorType(shape=shape, dtype="int32" if name == "lengths" else "float32")
        for name, shape in cell.arguments.items()
    }
    inputs = tuple(type_ for name, type_ in types.items() if name not in cell.results)
    facts = {"width": cell.width, "backwards": cell.backwards}
    steps = tuple(
        MeaningStep(
            operator=f"tuneloom.{cell.kind.lower()}",
            operands=tuple(range(len(inputs))),
            attributes={**facts, "result": number},
            result=types[name],
        )
        for number, name in enumerate(cell.results)
    )
    return Meaning(inputs=inputs, steps=steps, outputs=tuple(len(inputs) + n for n in range(len(steps))))


def steps_of(meaning: Meaning) -> int:
    """How many steps a recurrent kernel goes; 0 for any other."""
    first = meaning.steps[0] if meaning.steps else None
    own = first is not None and first.operator.startswith("tuneloom.")
    return first.result.shape[0] if first is not None and own else 0
