"""Kernels that go through a sequence step by step: LSTM, GRU and plain recurrent cells.

What depends on the input alone is a matrix product over the whole sequence, made before and tuned like any
other. A step multiplies the state by one matrix, packed so that a block of outputs stays in registers while
the state is read once, and then applies the gates. Unrolled into operators, a sequence of some hundred steps
would take minutes to lower.
"""

# mypy: disable-error-code="valid-type,untyped-decorator,no-untyped-def"
# In TVMScript types of buffers are calls, and functions have none.

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from tuneloom.compiler.lazy import T, relax, tirx
from tuneloom.tuners.tvm.importing.recurrence.activations import Activation

CELL = "tuneloom.cell"
"""The attribute of a kernel that says what it computes, for targets that need another one."""
_WIDEST = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The sizes and options of one direction of a recurrent layer."""

    kind: str
    steps: int
    batch: int
    hidden: int
    activations: tuple[Activation, ...]
    backwards: bool = False
    clip: float = 0.0
    peepholes: bool = False
    coupled: bool = False
    reset_after: bool = False

    @property
    def width(self) -> int:
        """How many outputs of a step are computed at once."""
        return next(size for size in (_WIDEST, 16, 8, 4, 2, 1) if self.hidden % size == 0)

    @property
    def text(self) -> str:
        """All of it in JSON."""
        return json.dumps(asdict(self))


def cell_of(text: str) -> Cell:
    """The cell that was written as this text."""
    values = json.loads(text)
    return Cell(**values | {"activations": tuple(Activation(**one) for one in values["activations"])})


def packed(weights: Any, cell: Cell) -> Any:
    """Recurrent weights (gates × hidden, hidden) as a kernel reads them: blocks of outputs, then inputs."""
    rows = int(weights.ty.shape.values[0])
    blocks = relax.op.reshape(weights, (rows // cell.width, cell.width, cell.hidden))
    return relax.op.permute_dims(blocks, (0, 2, 1))


def bounded_by(cell: Cell) -> Callable[[Any], Any]:
    if not cell.clip:
        return lambda x: x
    limit = tirx.const(cell.clip, "float32")
    return lambda x: T.max(T.min(x, limit), -limit)


@dataclass(frozen=True, slots=True)
class Loops:
    """Pieces of loops that kernels of all cells are made of, for TVMScript."""

    place: Any
    product: Any
    end: Any


def _loops(cell: Cell) -> Loops:
    hidden, width, backwards = cell.hidden, cell.width, cell.backwards

    def place(t: Any, b: Any, lengths: Any) -> Any:
        """The step that is read and written in turn t; backwards, a short sequence begins at its own end."""
        return T.Select(t < lengths[b], lengths[b] - 1 - t, t) if backwards else t

    @T.inline
    def product(sums, read, b, r, block):
        """Add a block of a matrix times row b of what is read; the sums stay in registers."""
        for k in T.serial(hidden):
            for v in T.vectorized(width):
                sums[v] = sums[v] + read[b, k] * r[block, k, v]

    @T.inline
    def end(y, place, b, block, state):
        """A block of the new state is an output."""
        for v in T.vectorized(width):
            y[place, b, block * width + v] = state[b, block * width + v]

    return Loops(place, product, end)


def lstm_kernel(cell: Cell) -> Any:
    """Inputs x, r, h0, c0, lengths, p; outputs y, h, c. Gates as in ONNX: input, output, forget, cell."""
    steps, batch, hidden, width = cell.steps, cell.batch, cell.hidden, cell.width
    gates, blocks, lanes = 4 * hidden, 4 * hidden // width, hidden // width
    f, g, h = cell.activations
    bounded, coupled, loops = bounded_by(cell), cell.coupled, _loops(cell)

    def gate(sums: Any, gate_number: int, p: Any, peephole: int, memory: Any, b: Any, at: Any) -> Any:
        """A gate before its activation, which may peep at the memory."""
        plain = sums[gate_number * hidden + at]
        return bounded(plain + p[peephole * hidden + at] * memory[b, at] if cell.peepholes else plain)

    @T.prim_func(s_tir=True)
    def lstm(
        x: T.Buffer((steps, batch, gates), "float32"),
        r: T.Buffer((blocks, hidden, width), "float32"),
        h0: T.Buffer((batch, hidden), "float32"),
        c0: T.Buffer((batch, hidden), "float32"),
        lengths: T.Buffer((batch,), "int32"),
        p: T.Buffer((3 * hidden,), "float32"),
        y: T.Buffer((steps, batch, hidden), "float32"),
        state: T.Buffer((batch, hidden), "float32"),
        memory: T.Buffer((batch, hidden), "float32"),
    ):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        with T.sblock("lstm"):
            sums = T.sblock_alloc_buffer((width,), "float32", scope="local")
            into = T.sblock_alloc_buffer((width,), "float32", scope="local")
            kept = T.sblock_alloc_buffer((width,), "float32", scope="local")
            pre = T.sblock_alloc_buffer((gates,), "float32")
            for b, j in T.grid(batch, hidden):
                state[b, j] = h0[b, j]
                memory[b, j] = c0[b, j]
            for t in T.serial(steps):
                for b in T.serial(batch):
                    place = T.meta_var(loops.place(t, b, lengths))
                    for block in T.serial(blocks):
                        for v in T.vectorized(width):
                            sums[v] = x[place, b, block * width + v]
                        loops.product(sums, state, b, r, block)
                        for v in T.vectorized(width):
                            pre[block * width + v] = sums[v]
                    for block in T.serial(lanes):
                        if t < lengths[b]:
                            for v in T.vectorized(width):
                                into[v] = f(gate(pre, 0, p, 0, memory, b, block * width + v))
                            for v in T.vectorized(width):
                                if coupled:
                                    kept[v] = T.float32(1.0) - into[v]
                                else:
                                    kept[v] = f(gate(pre, 2, p, 2, memory, b, block * width + v))
                            for v in T.vectorized(width):
                                memory[b, block * width + v] = kept[v] * memory[b, block * width + v] + (
                                    into[v] * g(bounded(pre[3 * hidden + block * width + v]))
                                )
                            for v in T.vectorized(width):
                                state[b, block * width + v] = f(
                                    gate(pre, 1, p, 1, memory, b, block * width + v)
                                ) * h(memory[b, block * width + v])
                            loops.end(y, place, b, block, state)
                        else:
                            for v in T.vectorized(width):
                                y[t, b, block * width + v] = T.float32(0.0)

    return lstm


def gru_kernel(cell: Cell) -> Any:
    """Inputs x, r, h0, lengths, rb; outputs y, h. Gates as in ONNX: update, reset, hidden."""
    steps, batch, hidden, width = cell.steps, cell.batch, cell.hidden, cell.width
    gates, lanes = 3 * hidden, hidden // width
    f, g = cell.activations
    bounded, reset_after, loops = bounded_by(cell), cell.reset_after, _loops(cell)

    @T.prim_func(s_tir=True)
    def gru(
        x: T.Buffer((steps, batch, gates), "float32"),
        r: T.Buffer((3 * lanes, hidden, width), "float32"),
        h0: T.Buffer((batch, hidden), "float32"),
        lengths: T.Buffer((batch,), "int32"),
        rb: T.Buffer((hidden,), "float32"),
        y: T.Buffer((steps, batch, hidden), "float32"),
        state: T.Buffer((batch, hidden), "float32"),
    ):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        with T.sblock("gru"):
            sums = T.sblock_alloc_buffer((width,), "float32", scope="local")
            gate = T.sblock_alloc_buffer((2 * hidden,), "float32")
            reset = T.sblock_alloc_buffer((batch, hidden), "float32")
            new = T.sblock_alloc_buffer((hidden,), "float32")
            for b, j in T.grid(batch, hidden):
                state[b, j] = h0[b, j]
            for t in T.serial(steps):
                for b in T.serial(batch):
                    place = T.meta_var(loops.place(t, b, lengths))
                    for block in T.serial(2 * lanes):
                        for v in T.vectorized(width):
                            sums[v] = x[place, b, block * width + v]
                        loops.product(sums, state, b, r, block)
                        for v in T.vectorized(width):
                            gate[block * width + v] = f(bounded(sums[v]))
                    for j in T.serial(hidden):
                        reset[b, j] = gate[hidden + j] * state[b, j]
                    for block in T.serial(lanes):
                        if reset_after:
                            for v in T.vectorized(width):
                                sums[v] = rb[block * width + v]
                            loops.product(sums, state, b, r, 2 * lanes + block)
                            for v in T.vectorized(width):
                                new[block * width + v] = g(
                                    bounded(
                                        x[place, b, 2 * hidden + block * width + v]
                                        + gate[hidden + block * width + v] * sums[v]
                                    )
                                )
                        else:
                            for v in T.vectorized(width):
                                sums[v] = x[place, b, 2 * hidden + block * width + v] + rb[block * width + v]
                            loops.product(sums, reset, b, r, 2 * lanes + block)
                            for v in T.vectorized(width):
                                new[block * width + v] = g(bounded(sums[v]))
                    for block in T.serial(lanes):
                        if t < lengths[b]:
                            for v in T.vectorized(width):
                                state[b, block * width + v] = new[block * width + v] + gate[
                                    block * width + v
                                ] * (state[b, block * width + v] - new[block * width + v])
                            loops.end(y, place, b, block, state)
                        else:
                            for v in T.vectorized(width):
                                y[t, b, block * width + v] = T.float32(0.0)

    return gru


def rnn_kernel(cell: Cell) -> Any:
    """Inputs x, r, h0, lengths; outputs y, h."""
    steps, batch, hidden, width = cell.steps, cell.batch, cell.hidden, cell.width
    lanes = hidden // width
    (f,) = cell.activations
    bounded, loops = bounded_by(cell), _loops(cell)

    @T.prim_func(s_tir=True)
    def rnn(
        x: T.Buffer((steps, batch, hidden), "float32"),
        r: T.Buffer((lanes, hidden, width), "float32"),
        h0: T.Buffer((batch, hidden), "float32"),
        lengths: T.Buffer((batch,), "int32"),
        y: T.Buffer((steps, batch, hidden), "float32"),
        state: T.Buffer((batch, hidden), "float32"),
    ):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        with T.sblock("rnn"):
            sums = T.sblock_alloc_buffer((width,), "float32", scope="local")
            new = T.sblock_alloc_buffer((hidden,), "float32")
            for b, j in T.grid(batch, hidden):
                state[b, j] = h0[b, j]
            for t in T.serial(steps):
                for b in T.serial(batch):
                    place = T.meta_var(loops.place(t, b, lengths))
                    for block in T.serial(lanes):
                        for v in T.vectorized(width):
                            sums[v] = x[place, b, block * width + v]
                        loops.product(sums, state, b, r, block)
                        for v in T.vectorized(width):
                            new[block * width + v] = f(bounded(sums[v]))
                    for block in T.serial(lanes):
                        if t < lengths[b]:
                            for v in T.vectorized(width):
                                state[b, block * width + v] = new[block * width + v]
                            loops.end(y, place, b, block, state)
                        else:
                            for v in T.vectorized(width):
                                y[t, b, block * width + v] = T.float32(0.0)

    return rnn
