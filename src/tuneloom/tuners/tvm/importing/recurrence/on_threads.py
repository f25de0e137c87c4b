"""The kernels of recurrent layers for a GPU: a thread for each unit of the state, a block for each sequence.

They take what the kernels for CPUs take, packed as those read it: where a block of outputs is as wide as a
warp, its threads read neighbouring values. The state is in shared memory; what only its own thread needs,
such as an LSTM's memory, is in registers.
"""

# mypy: disable-error-code="valid-type,untyped-decorator,no-untyped-def"
# In TVMScript types of buffers are calls, and functions have none.

from typing import Any

from tuneloom.compiler.lazy import T
from tuneloom.tuners.tvm.importing.recurrence.kernels import CELL, Cell, bounded_by, cell_of

_MOST_THREADS = 512


def on_threads(module: Any) -> Any:
    """The module with recurrent kernels that a GPU can run."""
    functions = {variable: _on_threads(function) for variable, function in module.functions.items()}
    return type(module)(functions, attrs=module.attrs)


def _on_threads(function: Any) -> Any:
    text = function.attrs.get(CELL) if function.attrs else None
    if text is None:
        return function
    cell = cell_of(str(text))
    kernels = {"LSTM": lstm_on_threads, "GRU": gru_on_threads, "RNN": rnn_on_threads}
    return kernels[cell.kind](cell).without_attr("global_symbol").with_attr(CELL, text)


class Threads:
    """How the units of a state are shared among threads, and pieces of loops for TVMScript."""

    def __init__(self, cell: Cell) -> None:
        hidden, width = cell.hidden, cell.width
        self.count = count = min(hidden, _MOST_THREADS)
        self.turns = turns = -(-hidden // count)

        @T.inline
        def product(sums, first, gates, read, r, unit):
            """Add rows of a matrix, that of this unit for each of some gates, times what is read."""
            for k in T.serial(hidden):
                for gate in T.unroll(gates):
                    sums[first + gate] = sums[first + gate] + (
                        read[k]
                        * r[
                            ((first + gate) * hidden + unit) // width,
                            k,
                            ((first + gate) * hidden + unit) % width,
                        ]
                    )

        @T.inline
        def take(mine, given, b, thread):
            """Read what a thread keeps of its units."""
            for turn in T.serial(turns):
                if turn * count + thread < hidden:
                    mine[turn] = given[b, turn * count + thread]

        @T.inline
        def give(result, mine, b, thread):
            """Store what a thread has kept of its units."""
            for turn in T.serial(turns):
                if turn * count + thread < hidden:
                    result[b, turn * count + thread] = mine[turn]

        @T.inline
        def renew(state, fresh, thread):
            """Put new values into the state when nobody reads the old ones any more."""
            T.tvm_storage_sync("shared")
            for turn in T.serial(turns):
                if turn * count + thread < hidden:
                    state[turn * count + thread] = fresh[turn]
            T.tvm_storage_sync("shared")

        self.product, self.take, self.give, self.renew = product, take, give, renew

    @staticmethod
    def place(cell: Cell, t: Any, length: Any) -> Any:
        """The step that is read and written in turn t of a sequence that is not over."""
        return length - 1 - t if cell.backwards else t


def lstm_on_threads(cell: Cell) -> Any:
    """Inputs x, r, h0, c0, lengths, p; outputs y, h, c. Gates as in ONNX: input, output, forget, cell."""
    steps, batch, hidden, width = cell.steps, cell.batch, cell.hidden, cell.width
    threads, bounded = Threads(cell), bounded_by(cell)
    count, turns = threads.count, threads.turns
    f, g, h = cell.activations

    def gate(sums: Any, number: int, p: Any, peephole: int, memory: Any, unit: Any) -> Any:
        """A gate before its activation, which may peep at the memory."""
        return bounded(
            sums[number] + p[peephole * hidden + unit] * memory if cell.peepholes else sums[number]
        )

    def forget(sums: Any, p: Any, into: Any, memory: Any, unit: Any) -> Any:
        return T.float32(1.0) - into if cell.coupled else f(gate(sums, 2, p, 2, memory, unit))

    @T.prim_func(s_tir=True)
    def lstm(
        x: T.Buffer((steps, batch, 4 * hidden), "float32"),
        r: T.Buffer((4 * hidden // width, hidden, width), "float32"),
        h0: T.Buffer((batch, hidden), "float32"),
        c0: T.Buffer((batch, hidden), "float32"),
        lengths: T.Buffer((batch,), "int32"),
        p: T.Buffer((3 * hidden,), "float32"),
        y: T.Buffer((steps, batch, hidden), "float32"),
        last: T.Buffer((batch, hidden), "float32"),
        memory: T.Buffer((batch, hidden), "float32"),
    ):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        for b in T.thread_binding(batch, thread="blockIdx.x"):
            for thread in T.thread_binding(count, thread="threadIdx.x"):
                with T.sblock("lstm"):
                    state = T.sblock_alloc_buffer((hidden,), "float32", scope="shared")
                    fresh = T.sblock_alloc_buffer((turns,), "float32", scope="local")
                    kept = T.sblock_alloc_buffer((turns,), "float32", scope="local")
                    sums = T.sblock_alloc_buffer((4,), "float32", scope="local")
                    into = T.sblock_alloc_buffer((1,), "float32", scope="local")
                    threads.take(fresh, h0, b, thread)
                    threads.take(kept, c0, b, thread)
                    threads.renew(state, fresh, thread)
                    for t in T.serial(steps):
                        for turn in T.serial(turns):
                            unit = T.meta_var(turn * count + thread)
                            if unit < hidden:
                                if t < lengths[b]:
                                    place = T.meta_var(threads.place(cell, t, lengths[b]))
                                    for number in T.unroll(4):
                                        sums[number] = x[place, b, number * hidden + unit]
                                    threads.product(sums, 0, 4, state, r, unit)
                                    into[0] = f(gate(sums, 0, p, 0, kept[turn], unit))
                                    kept[turn] = forget(sums, p, into[0], kept[turn], unit) * kept[turn] + (
                                        into[0] * g(bounded(sums[3]))
                                    )
                                    fresh[turn] = f(gate(sums, 1, p, 1, kept[turn], unit)) * h(kept[turn])
                                    y[place, b, unit] = fresh[turn]
                                else:
                                    y[t, b, unit] = T.float32(0.0)
                        threads.renew(state, fresh, thread)
                    threads.give(last, fresh, b, thread)
                    threads.give(memory, kept, b, thread)

    return lstm


def gru_on_threads(cell: Cell) -> Any:
    """Inputs x, r, h0, lengths, rb; outputs y, h. Gates as in ONNX: update, reset, hidden."""
    steps, batch, hidden, width = cell.steps, cell.batch, cell.hidden, cell.width
    threads, bounded = Threads(cell), bounded_by(cell)
    count, turns = threads.count, threads.turns
    f, g = cell.activations

    def read_by_reset(reset: Any, state: Any) -> Any:
        """What the hidden gate's matrix is multiplied by: the reset applies to it, or to the product."""
        return state if cell.reset_after else reset * state

    def hidden_gate(given: Any, product: Any, reset: Any) -> Any:
        return g(bounded(given + reset * product if cell.reset_after else given + product))

    @T.prim_func(s_tir=True)
    def gru(
        x: T.Buffer((steps, batch, 3 * hidden), "float32"),
        r: T.Buffer((3 * hidden // width, hidden, width), "float32"),
        h0: T.Buffer((batch, hidden), "float32"),
        lengths: T.Buffer((batch,), "int32"),
        rb: T.Buffer((hidden,), "float32"),
        y: T.Buffer((steps, batch, hidden), "float32"),
        last: T.Buffer((batch, hidden), "float32"),
    ):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        for b in T.thread_binding(batch, thread="blockIdx.x"):
            for thread in T.thread_binding(count, thread="threadIdx.x"):
                with T.sblock("gru"):
                    state = T.sblock_alloc_buffer((hidden,), "float32", scope="shared")
                    part = T.sblock_alloc_buffer((hidden,), "float32", scope="shared")
                    fresh = T.sblock_alloc_buffer((turns,), "float32", scope="local")
                    update = T.sblock_alloc_buffer((turns,), "float32", scope="local")
                    reset = T.sblock_alloc_buffer((turns,), "float32", scope="local")
                    read = T.sblock_alloc_buffer((turns,), "float32", scope="local")
                    sums = T.sblock_alloc_buffer((3,), "float32", scope="local")
                    threads.take(fresh, h0, b, thread)
                    threads.renew(state, fresh, thread)
                    for t in T.serial(steps):
                        for turn in T.serial(turns):
                            unit = T.meta_var(turn * count + thread)
                            if unit < hidden and t < lengths[b]:
                                place = T.meta_var(threads.place(cell, t, lengths[b]))
                                for number in T.unroll(2):
                                    sums[number] = x[place, b, number * hidden + unit]
                                threads.product(sums, 0, 2, state, r, unit)
                                update[turn] = f(bounded(sums[0]))
                                reset[turn] = f(bounded(sums[1]))
                                read[turn] = read_by_reset(reset[turn], fresh[turn])
                        threads.renew(part, read, thread)
                        for turn in T.serial(turns):
                            unit = T.meta_var(turn * count + thread)
                            if unit < hidden:
                                if t < lengths[b]:
                                    place = T.meta_var(threads.place(cell, t, lengths[b]))
                                    sums[2] = rb[unit]
                                    threads.product(sums, 2, 1, part, r, unit)
                                    sums[2] = hidden_gate(
                                        x[place, b, 2 * hidden + unit], sums[2], reset[turn]
                                    )
                                    fresh[turn] = sums[2] + update[turn] * (fresh[turn] - sums[2])
                                    y[place, b, unit] = fresh[turn]
                                else:
                                    y[t, b, unit] = T.float32(0.0)
                        threads.renew(state, fresh, thread)
                    threads.give(last, fresh, b, thread)

    return gru


def rnn_on_threads(cell: Cell) -> Any:
    """Inputs x, r, h0, lengths; outputs y, h."""
    steps, batch, hidden, width = cell.steps, cell.batch, cell.hidden, cell.width
    threads, bounded = Threads(cell), bounded_by(cell)
    count, turns = threads.count, threads.turns
    (f,) = cell.activations

    @T.prim_func(s_tir=True)
    def rnn(
        x: T.Buffer((steps, batch, hidden), "float32"),
        r: T.Buffer((hidden // width, hidden, width), "float32"),
        h0: T.Buffer((batch, hidden), "float32"),
        lengths: T.Buffer((batch,), "int32"),
        y: T.Buffer((steps, batch, hidden), "float32"),
        last: T.Buffer((batch, hidden), "float32"),
    ):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        for b in T.thread_binding(batch, thread="blockIdx.x"):
            for thread in T.thread_binding(count, thread="threadIdx.x"):
                with T.sblock("rnn"):
                    state = T.sblock_alloc_buffer((hidden,), "float32", scope="shared")
                    fresh = T.sblock_alloc_buffer((turns,), "float32", scope="local")
                    sums = T.sblock_alloc_buffer((1,), "float32", scope="local")
                    threads.take(fresh, h0, b, thread)
                    threads.renew(state, fresh, thread)
                    for t in T.serial(steps):
                        for turn in T.serial(turns):
                            unit = T.meta_var(turn * count + thread)
                            if unit < hidden:
                                if t < lengths[b]:
                                    place = T.meta_var(threads.place(cell, t, lengths[b]))
                                    sums[0] = x[place, b, unit]
                                    threads.product(sums, 0, 1, state, r, unit)
                                    fresh[turn] = f(bounded(sums[0]))
                                    y[place, b, unit] = fresh[turn]
                                else:
                                    y[t, b, unit] = T.float32(0.0)
                        threads.renew(state, fresh, thread)
                    threads.give(last, fresh, b, thread)

    return rnn
