"""Kernels of recurrent layers for a core: a block of units after another, each in vectors."""

from collections.abc import Callable
from typing import Any

from tuneloom.compiler.lazy import T
from tuneloom.tuners.tvm.importing.recurrence.cells import Cell, local, put, written


def kernel_of(*cells: Cell) -> Any:
    """The kernel of some cells, the arguments of each in the order of `Cell.arguments`."""
    return written(cells, lambda cell, given: _OnCore(cell, given).write())


class _OnCore:
    """One kernel while it is written."""

    def __init__(self, cell: Cell, given: Any) -> None:
        self.cell, self.given = cell, given
        self.hidden, self.width = cell.hidden, cell.width
        self.lanes = cell.hidden // cell.width

    def write(self) -> None:
        """Loops over steps and sequences around what the cell does."""
        given, cell = self.given, self.cell
        with T.sblock(cell.kind.lower()):
            self.sums = local(self.width)
            steps = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[cell.kind]()
            with T.grid(cell.batch, self.hidden) as (b, j):
                put(given.h, given.h0[b, j], b, j)
                if cell.kind == "LSTM":
                    put(given.c, given.c0[b, j], b, j)
            with T.serial(cell.steps) as self.t, T.serial(cell.batch) as self.b:
                self.place = self._place()
                steps()

    def _place(self) -> Any:
        """The step that is read and written in turn t; backwards, a short sequence begins at its own end."""
        t, length = self.t, self.given.lengths[self.b]
        return T.Select(t < length, length - 1 - t, t) if self.cell.backwards else t

    def _x(self, at: Any) -> Any:
        return self.given.x[self.place, self.b, at]

    def _summed(
        self, first: int, gates: int, begin: Callable[[Any], Any], read: Any, end: Callable[[Any, Any], None]
    ) -> None:
        """Rows of some gates: what each begins with, plus the matrix times row b of what is read.

        The sums of a block stay in registers; `end` gets a sum and its place among these rows.
        """
        width, sums = self.width, self.sums
        with T.serial(gates * self.lanes) as block:
            self._vector(lambda v: put(sums, begin(block * width + v), v))
            with T.serial(self.hidden) as k, T.vectorized(width) as v:
                weight = self.given.r[first * self.lanes + block, k, v]
                put(sums, sums[v] + read[self.b, k] * weight, v)
            self._vector(lambda v: end(sums[v], block * width + v))

    def _vector(self, store: Callable[[Any], None]) -> None:
        with T.vectorized(self.width) as v:
            store(v)

    def _units(self, renew: Callable[[Callable[[Callable[[Any, Any], None]], None]], None]) -> None:
        """New states of all units, which are outputs; beyond the end of a sequence these are zero."""
        y, width = self.given.y, self.width
        with T.serial(self.lanes) as block, T.If(self.t < self.given.lengths[self.b]):

            def each(store: Callable[[Any, Any], None]) -> None:
                self._vector(lambda v: store(v, block * width + v))

            with T.Then():
                renew(each)
                each(lambda v, at: put(y, self.given.h[self.b, at], self.place, self.b, at))
            with T.Else():
                each(lambda v, at: put(y, T.float32(0.0), self.t, self.b, at))

    def _lstm(self) -> Callable[[], None]:
        cell, given, hidden = self.cell, self.given, self.hidden
        into, kept, pre = local(self.width), local(self.width), local(4 * hidden, scope="global")
        f, g, h = cell.activations

        def gate(number: int, peephole: int, at: Any) -> Any:
            peeped = given.p[peephole * hidden + at]
            return f(cell.gate(pre[number * hidden + at], peeped, given.c[self.b, at]))

        def kept_at(v: Any, at: Any) -> Any:
            return T.float32(1.0) - into[v] if cell.coupled else gate(2, 2, at)

        def memory(v: Any, at: Any) -> Any:
            return kept[v] * given.c[self.b, at] + into[v] * g(cell.bounded(pre[3 * hidden + at]))

        def renew(each: Any) -> None:
            each(lambda v, at: put(into, gate(0, 0, at), v))
            each(lambda v, at: put(kept, kept_at(v, at), v))
            each(lambda v, at: put(given.c, memory(v, at), self.b, at))
            each(lambda v, at: put(given.h, gate(1, 1, at) * h(given.c[self.b, at]), self.b, at))

        def steps() -> None:
            self._summed(0, 4, self._x, given.h, lambda total, at: put(pre, total, at))
            self._units(renew)

        return steps

    def _gru(self) -> Callable[[], None]:
        cell, given, hidden = self.cell, self.given, self.hidden
        gate, new = local(2 * hidden, scope="global"), local(hidden, scope="global")
        reset = local(cell.batch, hidden, scope="global")
        f, g = cell.activations

        def begin(at: Any) -> Any:
            return given.rb[at] if cell.reset_after else self._x(2 * hidden + at) + given.rb[at]

        def end(total: Any, at: Any) -> None:
            whole = self._x(2 * hidden + at) + gate[hidden + at] * total if cell.reset_after else total
            put(new, g(cell.bounded(whole)), at)

        def renewed(at: Any) -> Any:
            return new[at] + gate[at] * (given.h[self.b, at] - new[at])

        def steps() -> None:
            self._summed(0, 2, self._x, given.h, lambda total, at: put(gate, f(cell.bounded(total)), at))
            with T.serial(hidden) as j:
                put(reset, gate[hidden + j] * given.h[self.b, j], self.b, j)
            self._summed(2, 1, begin, given.h if cell.reset_after else reset, end)
            self._units(lambda each: each(lambda v, at: put(given.h, renewed(at), self.b, at)))

        return steps

    def _rnn(self) -> Callable[[], None]:
        cell, given, new = self.cell, self.given, local(self.hidden, scope="global")
        (f,) = cell.activations

        def steps() -> None:
            self._summed(0, 1, self._x, given.h, lambda total, at: put(new, f(cell.bounded(total)), at))
            self._units(lambda each: each(lambda v, at: put(given.h, new[at], self.b, at)))

        return steps
