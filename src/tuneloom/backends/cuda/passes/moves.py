"""Rows in another order before what is computed from each row alone, not behind it.

The windows of an image are its pixels in another order. Norms and products of rows read them in any order
in place; behind a norm or a product, changing the order takes a kernel that only copies.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from tuneloom.backends.cuda.passes.views import as_row, axes_of, is_row
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.renewing import bindings_of, with_main
from tuneloom.compiler.rewriting import UNARY, Lookup, Readers, bound_of, name_of, shape_of

_NORMS = frozenset(("nn.layer_norm", "nn.rms_norm"))
_SCALING = frozenset(("add", "subtract", "multiply", "divide"))


@dataclass(frozen=True, slots=True)
class _Move:
    """A change of the order of rows, or some of them: what it reads, and the same for rows of any length."""

    source: Any
    again: Callable[[Any, Any], Any]
    is_reshape: bool = False


def moves_before(module: Any) -> Any:
    """The module with rows moved before norms and products whose results nobody else reads."""
    bindings = bindings_of(module)
    found = _Moving(bindings)
    ends = {binding.var: found.chain(binding.var) for binding in bindings}
    if not any(ends.values()):
        return module

    def write(builder: Any) -> Any:
        for binding in bindings:
            chain = ends[binding.var]
            value = binding.value if chain is None else chain.written(builder)
            builder.emit_normalized(relax.VarBinding(binding.var, builder.normalize(value)))
        return module["main"].body.body

    return relax.transform.DeadCodeElimination()(with_main(module, write))


@dataclass(frozen=True, slots=True)
class _Chain:
    """Operators on single rows of `source`, the last first, and moves behind them, the last first, too."""

    end: Any
    source: Any
    before: tuple[int, ...]
    """The shape of what was moved."""
    operators: tuple[Any, ...]
    moves: tuple[_Move, ...]

    def written(self, builder: Any) -> Any:
        """The same value, its rows moved first."""
        length = (shape_of(self.source) or (0,))[-1]
        value = builder.emit(relax.op.reshape(self.source, (*self.before[:-1], length)))
        for move in reversed(self.moves):
            value = builder.emit(move.again(builder, value))
        if any(name_of(one) == "matmul" for one in self.operators):
            rows = prod((shape_of(value) or ())[:-1])
            value = builder.emit(relax.op.reshape(value, (rows, length)))
        for one in reversed(self.operators):
            operands = [as_row(each) for each in one.args] if name_of(one) in _SCALING else list(one.args)
            operands[_place(one)] = value
            value = builder.emit(relax.Call(one.op, operands, one.attrs))
        return relax.op.reshape(value, shape_of(self.end))


class _Moving:
    """Moves of rows in a program, and what they could stand before."""

    def __init__(self, bindings: list[Any]) -> None:
        self._readers = Readers(bindings)
        made = {binding.var: binding.value for binding in bindings}
        self._made: Lookup = lambda value: made.get(value, value)

    def chain(self, end: Any) -> _Chain | None:
        """The longest chain of moves that ends with a variable, and the operators before it."""
        moves, value = [], end
        follower = self._readers.only(end)
        if follower is not None and self._move(follower.var) is not None:
            return None
        while (move := self._move(value)) is not None:
            moves.append(move)
            value = move.source
        if all(move.is_reshape for move in moves):
            return None
        operators, source = [], value
        while (one := self._alone(source)) is not None:
            operators.append(one)
            source = one.args[_place(one)]
        kept = tuple(one for one in operators if name_of(one) != "reshape")
        if not any(name_of(one) in _NORMS or name_of(one) == "matmul" for one in kept):
            return None
        return _Chain(end, source, shape_of(value) or (), kept, tuple(moves))

    def _alone(self, value: Any) -> Any | None:
        """The operator on single rows that a value is the result of, if nobody but one reads it."""
        call = self._made(value)
        name, shape = name_of(call), shape_of(call)
        if shape is None or not self._readers.together(value) or not isinstance(value, relax.DataflowVar):
            return None
        if name == "matmul":
            fits = len(shape_of(call.args[1]) or ()) == 2 and _is_constant(call.args[1])
        elif name in _NORMS:
            fits = [int(axis) % len(shape) for axis in call.attrs.axes] == [len(shape) - 1]
        elif name in _SCALING:
            place = _place(call)
            fits = shape_of(call.args[place]) == shape and is_row(call.args[1 - place])
        else:
            fits = name in UNARY or (name == "reshape" and _keeps_rows(call))
        return call if fits else None

    def _move(self, value: Any) -> _Move | None:
        """The move that a value is the result of, if nobody else reads what was moved."""
        call = self._made(value)
        shape = shape_of(call)
        make = {
            "reshape": self._reshape,
            "permute_dims": self._turn,
            "strided_slice": self._slice,
            "concat": self._roll,
        }.get(name_of(call))
        move = None if make is None or shape is None else make(call)
        return move if move is not None and self._readers.together(move.source) else None

    def _reshape(self, call: Any) -> _Move | None:
        outer = (shape_of(call) or ())[:-1]

        def again(_: Any, value: Any) -> Any:
            return relax.op.reshape(value, (*outer, (shape_of(value) or ())[-1]))

        return _Move(call.args[0], again, is_reshape=True) if _keeps_rows(call) else None

    def _turn(self, call: Any) -> _Move | None:
        axes = axes_of(call)
        keeps = axes[-1] == len(axes) - 1
        return _Move(call.args[0], lambda _, value: relax.op.permute_dims(value, axes)) if keeps else None

    def _slice(self, call: Any) -> _Move | None:
        axes = [bound_of(one) for one in call.args[1].fields]
        bounds = [[bound_of(one) for one in each.fields] for each in call.args[2:]]
        if any(axis % len(shape_of(call) or ()) == len(shape_of(call) or ()) - 1 for axis in axes):
            return None
        return _Move(call.args[0], lambda _, value: relax.op.strided_slice(value, axes, *bounds))

    def _roll(self, call: Any) -> _Move | None:
        """Slices of one tensor joined again."""
        fields = list(getattr(call.args[0], "fields", ()))
        parts = [self._made(one) for one in fields]
        if not parts or any(name_of(one) != "strided_slice" for one in parts):
            return None
        moves = [self._slice(one) for one in parts]
        axis, first = int(call.attrs.axis), moves[0]
        last = len(shape_of(call) or ()) - 1
        if first is None or axis % (last + 1) == last or not all(map(self._readers.together, fields)):
            return None
        if any(move is None or not move.source.same_as(first.source) for move in moves):
            return None

        def again(builder: Any, value: Any) -> Any:
            slices = [builder.emit(move.again(builder, value)) for move in moves if move is not None]
            return relax.op.concat(slices, axis)

        return _Move(first.source, again)


def _place(call: Any) -> int:
    """Which operand has the rows: the first, unless that is a constant."""
    return 1 if name_of(call) in _SCALING and is_row(call.args[0]) else 0


def _is_constant(value: Any) -> bool:
    return not isinstance(value, relax.Var)


def _keeps_rows(reshape: Any) -> bool:
    before, after = shape_of(reshape.args[0]) or (), shape_of(reshape) or ()
    return bool(before) and before[-1:] == after[-1:]
