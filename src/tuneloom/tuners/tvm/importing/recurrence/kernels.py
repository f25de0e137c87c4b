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
        """Loops over steps and sequences around what the cell does before the end of a sequence."""
        given, cell = self.given, self.cell
        with T.sblock(cell.kind.lower()):
            self.sums = local(self.width)
            step = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[cell.kind]()
            with T.grid(cell.batch, self.hidden) as (b, j):
                put(given.h, given.h0[b, j], b, j)
                if cell.kind == "LSTM":
                    put(given.c, given.c0[b, j], b, j)
            with T.serial(cell.steps) as self.t, T.serial(cell.batch) as self.b:
                self.place = self._place()
                with T.If(cell.goes_on(given, self.t, self.b)):
                    with T.Then():
                        step()
                    with T.Else():
                        self._units(lambda at: put(given.y, T.float32(0.0), self.t, self.b, at))

    def _place(self) -> Any:
        """The step that is read and written in turn t; backwards, a short sequence begins at its own end."""
        return self.given.lengths[self.b] - 1 - self.t if self.cell.backwards else self.t

    def _x(self, at: Any) -> Any:
        return self.given.x[self.place, self.b, at]

    def _summed(
        self, first: int, gates: int, begin: Callable[[Any], Any], read: Any, into: Any, at: int = 0
    ) -> None:
        """Rows of some gates: what each begins with, plus the matrix times row b of what is read.

        The sums of a block stay in registers, and are stored in a buffer from some place on. Activations
        come later, for all gates: a block's own would hold up the sums of the next.
        """
        width, sums = self.width, self.sums
        with T.serial(gates * self.lanes) as block:
            self._vector(lambda v: put(sums, begin(block * width + v), v))
            with T.serial(self.hidden) as k, T.vectorized(width) as v:
                weight = self.given.r[first * self.lanes + block, k, v]
                put(sums, sums[v] + read[self.b, k] * weight, v)
            self._vector(lambda v: put(into, sums[v], at + block * width + v))

    def _vector(self, store: Callable[[Any], None]) -> None:
        with T.vectorized(self.width) as v:
            store(v)

    def _units(self, *stores: Callable[[Any], None]) -> None:
        """Something for all units after another, a vector of them at a time."""
        with T.serial(self.lanes) as block:
            for store in stores:
                with T.vectorized(self.width) as v:
                    store(block * self.width + v)

    def _give(self, at: Any) -> None:
        """The new state of a unit is an output."""
        put(self.given.y, self.given.h[self.b, at], self.place, self.b, at)

    def _lstm(self) -> Callable[[], None]:
        cell, given, hidden = self.cell, self.given, self.hidden
        pre = local(4 * hidden, scope="global")
        f, g, h = cell.activations

        def gate(number: int, peephole: int, at: Any) -> Any:
            peeped = given.p[peephole * hidden + at]
            return f(cell.gate(pre[number * hidden + at], peeped, given.c[self.b, at]))

        def into(at: Any) -> None:
            put(pre, gate(0, 0, at), at)

        def kept(at: Any) -> None:
            put(pre, T.float32(1.0) - pre[at] if cell.coupled else gate(2, 2, at), 2 * hidden + at)

        def memory(at: Any) -> None:
            new = g(cell.bounded(pre[3 * hidden + at]))
            put(given.c, pre[2 * hidden + at] * given.c[self.b, at] + pre[at] * new, self.b, at)

        def state(at: Any) -> None:
            put(given.h, gate(1, 1, at) * h(given.c[self.b, at]), self.b, at)

        def step() -> None:
            self._summed(0, 4, self._x, given.h, pre)
            self._units(into, kept, memory, state, self._give)

        return step

    def _gru(self) -> Callable[[], None]:
        cell, given, hidden = self.cell, self.given, self.hidden
        pre, reset = local(3 * hidden, scope="global"), local(cell.batch, hidden, scope="global")
        f, g = cell.activations

        def begin(at: Any) -> Any:
            return given.rb[at] if cell.reset_after else self._x(2 * hidden + at) + given.rb[at]

        def update(at: Any) -> None:
            put(pre, f(cell.bounded(pre[at])), at)

        def forget(at: Any) -> None:
            put(pre, f(cell.bounded(pre[hidden + at])), hidden + at)

        def forgetting(at: Any) -> None:
            put(reset, pre[hidden + at] * given.h[self.b, at], self.b, at)

        def new(at: Any) -> None:
            total = pre[2 * hidden + at]
            whole = self._x(2 * hidden + at) + pre[hidden + at] * total if cell.reset_after else total
            put(pre, g(cell.bounded(whole)), 2 * hidden + at)

        def state(at: Any) -> None:
            fresh = pre[2 * hidden + at]
            put(given.h, fresh + pre[at] * (given.h[self.b, at] - fresh), self.b, at)

        def step() -> None:
            self._summed(0, 2, self._x, given.h, pre)
            if not cell.reset_after:
                self._units(forget, forgetting)
            self._summed(2, 1, begin, given.h if cell.reset_after else reset, pre, 2 * hidden)
            gates = (update, forget) if cell.reset_after else (update,)
            self._units(*gates, new, state, self._give)

        return step

    def _rnn(self) -> Callable[[], None]:
        cell, given, pre = self.cell, self.given, local(self.hidden, scope="global")
        (f,) = cell.activations

        def state(at: Any) -> None:
            put(given.h, f(cell.bounded(pre[at])), self.b, at)

        def step() -> None:
            self._summed(0, 1, self._x, given.h, pre)
            self._units(state, self._give)

        return step
