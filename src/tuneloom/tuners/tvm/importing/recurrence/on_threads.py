"""Kernels of recurrent layers for a GPU: a thread for each unit of the state, a block for each sequence.

They take what the kernels for a core take, packed as those read it: where a block of outputs is as wide as a
warp, its threads read neighbouring values. The state is in shared memory; what only its own thread needs,
such as an LSTM's memory, is in registers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tuneloom.compiler.lazy import T
from tuneloom.tuners.tvm.importing.recurrence.cells import GATES, Cell, cells_in, local, put, written

_MOST_THREADS = 512


def on_threads(module: Any) -> Any:
    """The module with recurrent kernels that a GPU can run."""
    functions = {variable: _on_threads(function) for variable, function in module.functions.items()}
    return type(module)(functions, attrs=module.attrs)


def _on_threads(function: Any) -> Any:
    cells = cells_in(function)
    return written(cells, lambda cell, given: _OnThreads(cell, given).write()) if cells else function


class _OnThreads:
    """One kernel while it is written."""

    def __init__(self, cell: Cell, given: Any) -> None:
        self.cell, self.given, self.hidden = cell, given, cell.hidden
        self.count = min(cell.hidden, _MOST_THREADS)
        self.turns = -(-cell.hidden // self.count)

    def write(self) -> None:
        """Threads, and a loop over steps around what the cell does."""
        given, cell = self.given, self.cell
        blocks = T.thread_binding(cell.batch, thread="blockIdx.x")
        threads = T.thread_binding(self.count, thread="threadIdx.x")
        with blocks as self.b, threads as self.thread, T.sblock(cell.kind.lower()):
            self.state, self.sums = local(self.hidden, scope="shared"), local(GATES[cell.kind])
            self.fresh = local(self.turns)
            own = [(self.fresh, given.h0, given.h)]
            if cell.kind == "LSTM":
                self.memory = local(self.turns)
                own.append((self.memory, given.c0, given.c))
            step = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[cell.kind]()
            for mine, first, _ in own:
                with self._units() as (turn, unit):
                    put(mine, first[self.b, unit], turn)
            self._renew(self.state, self.fresh)
            with T.serial(cell.steps) as self.t:
                step()
                self._renew(self.state, self.fresh)
            for mine, _, last in own:
                with self._units() as (turn, unit):
                    put(last, mine[turn], self.b, unit)

    @contextmanager
    def _units(self) -> Iterator[tuple[Any, Any]]:
        """The units of a thread, one in each turn."""
        with T.serial(self.turns) as turn:
            unit = turn * self.count + self.thread
            with T.If(unit < self.hidden), T.Then():
                yield turn, unit

    def _renew(self, shared: Any, mine: Any) -> None:
        """Put new values into shared memory when nobody reads the old ones any more."""
        T.evaluate(T.tvm_storage_sync("shared"))
        with self._units() as (turn, unit):
            put(shared, mine[turn], unit)
        T.evaluate(T.tvm_storage_sync("shared"))

    @property
    def _goes_on(self) -> Any:
        return self.cell.goes_on(self.given, self.t, self.b)

    @property
    def _place(self) -> Any:
        """The step that is read and written in turn t of a sequence that is not over."""
        return self.given.lengths[self.b] - 1 - self.t if self.cell.backwards else self.t

    def _x(self, gate: Any, unit: Any) -> Any:
        return self.given.x[self._place, self.b, gate * self.hidden + unit]

    def _summed(self, first: int, gates: int, begin: Callable[[Any, Any], Any], read: Any, unit: Any) -> None:
        """Some gates of a unit: what each begins with, plus a row of the matrix times what is read."""
        sums, width = self.sums, self.cell.width
        with T.unroll(gates) as gate:
            put(sums, begin(gate, unit), first + gate)
        with T.serial(self.hidden) as k, T.unroll(gates) as gate:
            row = (first + gate) * self.hidden + unit
            product = read[k] * self.given.r[row // width, k, row % width]
            put(sums, sums[first + gate] + product, first + gate)

    def _outputs(self, renew: Callable[[Any, Any], None]) -> None:
        """New states of all units, which are outputs; beyond the end of a sequence these are zero."""
        y = self.given.y
        with self._units() as (turn, unit), T.If(self._goes_on):
            with T.Then():
                renew(turn, unit)
                put(y, self.fresh[turn], self._place, self.b, unit)
            with T.Else():
                put(y, T.float32(0.0), self.t, self.b, unit)

    def _lstm(self) -> Callable[[], None]:
        cell, sums, memory, into = self.cell, self.sums, self.memory, local(1)
        f, g, h = cell.activations

        def gate(number: int, peephole: int, turn: Any, unit: Any) -> Any:
            peeped = self.given.p[peephole * self.hidden + unit]
            return f(cell.gate(sums[number], peeped, memory[turn]))

        def renew(turn: Any, unit: Any) -> None:
            self._summed(0, 4, self._x, self.state, unit)
            put(into, gate(0, 0, turn, unit), 0)
            kept = T.float32(1.0) - into[0] if cell.coupled else gate(2, 2, turn, unit)
            put(memory, kept * memory[turn] + into[0] * g(cell.bounded(sums[3])), turn)
            put(self.fresh, gate(1, 1, turn, unit) * h(memory[turn]), turn)

        return lambda: self._outputs(renew)

    def _gru(self) -> Callable[[], None]:
        cell, sums, fresh = self.cell, self.sums, self.fresh
        update, reset, read = local(self.turns), local(self.turns), local(self.turns)
        part = local(self.hidden, scope="shared")
        f, g = cell.activations

        def renew(turn: Any, unit: Any) -> None:
            self._summed(2, 1, lambda _, at: self.given.rb[at], part, unit)
            product = reset[turn] * sums[2] if cell.reset_after else sums[2]
            put(sums, g(cell.bounded(self._x(2, unit) + product)), 2)
            put(fresh, sums[2] + update[turn] * (fresh[turn] - sums[2]), turn)

        def step() -> None:
            with self._units() as (turn, unit), T.If(self._goes_on), T.Then():
                self._summed(0, 2, self._x, self.state, unit)
                put(update, f(cell.bounded(sums[0])), turn)
                put(reset, f(cell.bounded(sums[1])), turn)
                put(read, fresh[turn] if cell.reset_after else reset[turn] * fresh[turn], turn)
            self._renew(part, read)
            self._outputs(renew)

        return step

    def _rnn(self) -> Callable[[], None]:
        (f,) = self.cell.activations

        def renew(turn: Any, unit: Any) -> None:
            self._summed(0, 1, self._x, self.state, unit)
            put(self.fresh, f(self.cell.bounded(self.sums[0])), turn)

        return lambda: self._outputs(renew)
