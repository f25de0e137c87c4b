"""What a recurrent kernel computes, for those who make code for it from its meaning."""

from tuneloom.backends.meaning import Meaning, MeaningStep, TensorType
from tuneloom.tuners.tvm.importing.recurrence.kernels import Cell

_USUAL = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh")}
_GATES = {"LSTM": 4, "GRU": 3}


def meaning_of(cell: Cell) -> Meaning | None:
    """The meaning of a usual LSTM or GRU, with a step for each result; None of other cells."""
    names = tuple(one.name.lower() for one in cell.activations)
    options = cell.clip or cell.peepholes or cell.coupled or (cell.kind == "GRU" and not cell.reset_after)
    if _USUAL.get(cell.kind) != names or options:
        return None
    gates, state = _GATES[cell.kind], (cell.batch, cell.hidden)
    lengths = TensorType(shape=(cell.batch,), dtype="int32")
    states = [state, state] if cell.kind == "LSTM" else [state]
    matrix = (gates * cell.hidden // cell.width, cell.hidden, cell.width)
    shapes = [(cell.steps, cell.batch, gates * cell.hidden), matrix, *states]
    last = (3 * cell.hidden,) if cell.kind == "LSTM" else (cell.hidden,)
    results = [(cell.steps, *state), *states]
    inputs = (*map(_single, shapes), lengths, _single(last))
    facts = {"width": cell.width, "backwards": cell.backwards}
    steps = tuple(
        MeaningStep(
            operator=f"tuneloom.{cell.kind.lower()}",
            operands=tuple(range(len(inputs))),
            attributes={**facts, "result": number},
            result=_single(shape),
        )
        for number, shape in enumerate(results)
    )
    return Meaning(inputs=inputs, steps=steps, outputs=tuple(len(inputs) + n for n in range(len(steps))))


def _single(shape: tuple[int, ...]) -> TensorType:
    return TensorType(shape=shape, dtype="float32")
