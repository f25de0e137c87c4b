"""TensorFlow Lite files whose values decide what is computed: a branch, a loop, rows of a table."""

from pathlib import Path

import numpy as np

from support.models.tflite_files import FlatModel, Values

SHAPE = (1, 4)


def write_branching_tflite(path: Path, turns: int | None) -> None:
    """Twice the input if its sum is above zero, else its negative, then doubled so often.

    Without a number of turns it is doubled until its sum is out of reach, so that the input decides.
    """
    import flatbuffers

    flat = FlatModel(flatbuffers.Builder(4096))
    flat.buffers.append(flat.table("Buffer"))
    x, chosen, result = (flat.tensor(name, SHAPE) for name in ("x", "chosen", "result"))
    above = _is_above(flat, x, 0.0)
    flat.operator("IF", [above, x], chosen, "IfOptions", ThenSubgraphIndex=1, ElseSubgraphIndex=2)
    start, end = flat.tensor("start", (), np.array(0, np.int32)), flat.tensor("end", (), dtype="int32")
    flat.operator(
        "WHILE", [start, chosen], [end, result], "WhileOptions", CondSubgraphIndex=3, BodySubgraphIndex=4
    )
    flat.graph([x], [result])
    _doubled(flat)
    _negated(flat)
    _unfinished(flat, turns)
    path.write_bytes(_turn(flat))


def write_lookup_tflite(path: Path) -> Values:
    """Rows of a table, by numbers that are the input; returns the table."""
    import flatbuffers

    flat = FlatModel(flatbuffers.Builder(1024))
    flat.buffers.append(flat.table("Buffer"))
    values = np.arange(20, dtype=np.float32).reshape(5, 4)
    table, rows = flat.tensor("table", (5, 4), values), flat.tensor("rows", (3,), dtype="int32")
    found = flat.tensor("found", (3, 4))
    flat.operator("GATHER", [table, rows], found, "GatherOptions")
    path.write_bytes(flat.finished([rows], [found]))
    return values


def write_summing_tflite(path: Path, start: float) -> None:
    """The sum of all inputs so far, kept in a variable that begins with a number."""
    import flatbuffers

    flat = FlatModel(flatbuffers.Builder(1024))
    flat.buffers.append(flat.table("Buffer"))
    x, seen, total = (flat.tensor(name, SHAPE) for name in ("x", "seen", "total"))
    flat.operator("CALL_ONCE", [], [], "CallOnceOptions", InitSubgraphIndex=1)
    handle = _handle(flat)
    flat.operator("READ_VARIABLE", [handle], seen, "ReadVariableOptions")
    flat.operator("ADD", [x, seen], total, "AddOptions")
    flat.operator("ASSIGN_VARIABLE", [handle, total], [], "AssignVariableOptions")
    flat.graph([x], [total])
    first = flat.tensor("first", SHAPE, np.full(SHAPE, start, np.float32))
    flat.operator("ASSIGN_VARIABLE", [_handle(flat), first], [], "AssignVariableOptions")
    path.write_bytes(flat.finished([], []))


def _handle(flat: FlatModel) -> int:
    handle = flat.tensor("handle", (), dtype="resource")
    flat.operator("VAR_HANDLE", [], handle, "VarHandleOptions", SharedName=flat.builder.CreateString("sum"))
    return handle


def branched(x: Values, turns: int | None) -> Values:
    """What such a file computes."""
    y = 2 * x if x.sum() > 0 else -x
    if turns is not None:
        return y * np.float32(2**turns)
    while not y.sum() > 100:
        y = y + y
    return y


def _is_above(flat: FlatModel, x: int, limit: float) -> int:
    axes, bound = flat.tensor("axes", (2,), np.array([0, 1], np.int32)), np.array(limit, np.float32)
    total, above = flat.tensor("total", ()), flat.tensor("above", (), dtype="bool")
    flat.operator("SUM", [x, axes], total, "ReducerOptions", KeepDims=False)
    flat.operator("GREATER", [total, flat.tensor("bound", (), bound)], above, "GreaterOptions")
    return above


def _doubled(flat: FlatModel) -> None:
    x, y = flat.tensor("x", SHAPE), flat.tensor("y", SHAPE)
    flat.operator("ADD", [x, x], y, "AddOptions")
    flat.graph([x], [y])


def _negated(flat: FlatModel) -> None:
    x, y = flat.tensor("x", SHAPE), flat.tensor("y", SHAPE)
    flat.operator("NEG", [x], y, "NegOptions")
    flat.graph([x], [y])


def _unfinished(flat: FlatModel, turns: int | None) -> None:
    count, x = flat.tensor("count", (), dtype="int32"), flat.tensor("x", SHAPE)
    goes_on = flat.tensor("goes_on", (), dtype="bool")
    if turns is None:
        flat.operator("LOGICAL_NOT", [_is_above(flat, x, 100.0)], goes_on, "LogicalNotOptions")
    else:
        most = flat.tensor("most", (), np.array(turns, np.int32))
        flat.operator("LESS", [count, most], goes_on, "LessOptions")
    flat.graph([count, x], [goes_on])


def _turn(flat: FlatModel) -> bytes:
    count, x = flat.tensor("count", (), dtype="int32"), flat.tensor("x", SHAPE)
    one, more = flat.tensor("one", (), np.array(1, np.int32)), flat.tensor("more", (), dtype="int32")
    y = flat.tensor("y", SHAPE)
    flat.operator("ADD", [count, one], more, "AddOptions")
    flat.operator("ADD", [x, x], y, "AddOptions")
    return flat.finished([count, x], [more, y])
