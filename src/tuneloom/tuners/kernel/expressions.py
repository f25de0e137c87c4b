"""Restrictions over knobs: parsed by a whitelist, evaluated over whole columns, never `eval`.

Arithmetic that is undefined (a division by zero) satisfies no comparison.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tuneloom.errors import SpaceError

Column = NDArray[Any]
_Evaluator = Callable[[Mapping[str, Column]], Any]
LONGEST = 10_000
"""Characters in one restriction; longer ones are refused."""


@dataclass(frozen=True, slots=True)
class Restriction:
    """A condition that configurations must meet; `names` are the knobs it reads."""

    text: str
    names: frozenset[str]
    _evaluate: _Evaluator = field(repr=False, compare=False)

    def holds(self, columns: Mapping[str, Column]) -> NDArray[np.bool_]:
        """Tell for every row of the columns whether the condition is met."""
        length = len(next(iter(columns.values())))
        with np.errstate(all="ignore"):
            result = self._evaluate(columns)
        return np.broadcast_to(_truth(result), (length,))


def parse(text: str, knobs: Mapping[str, Any]) -> Restriction:
    """Read one restriction; raises SpaceError with the position of what is wrong."""
    if len(text) > LONGEST:
        raise SpaceError(f"a restriction of {len(text)} characters is too long, at most {LONGEST}")
    source = text.strip()
    try:
        tree = ast.parse(source, mode="eval")
        reader = _Reader(source, knobs)
        evaluate = reader.read(tree.body)
    except SyntaxError as error:
        _refuse(source, _column_of(error, source), error.msg)
    except (RecursionError, MemoryError):
        raise SpaceError(f"restriction {source[:40]!r}… is nested too deeply") from None
    except ValueError as error:
        raise SpaceError(f"restriction {source[:40]!r} does not parse: {error}") from None
    return Restriction(source, frozenset(reader.names), evaluate)


def _column_of(error: SyntaxError, source: str) -> int:
    """Where a syntax error is; one at the very end has no position of its own."""
    return error.offset if error.offset and error.lineno == 1 and error.text else len(source) + 1


def _refuse(text: str, column: int, reason: str) -> NoReturn:
    pointer = " " * (column - 1) + "^"
    raise SpaceError(f"restriction does not parse at column {column}: {reason}\n  {text}\n  {pointer}")


def _truth(value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype == bool:
        return array
    if array.dtype.kind == "f":
        return (array != 0) & ~np.isnan(array)
    return array.astype(bool)


def _number(value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        raise SpaceError(
            "a restriction does arithmetic on a knob that is not a number; compare it with == or in"
        )
    return array.astype(np.float64)


def _safe(divide: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        return np.where(right == 0, np.nan, divide(left, np.where(right == 0, 1.0, right)))

    return apply


_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: _safe(np.divide),
    ast.FloorDiv: _safe(np.floor_divide),
    ast.Mod: _safe(np.mod),
    ast.Pow: np.power,
}
_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": lambda *items: np.minimum.reduce(np.broadcast_arrays(*items)),
    "max": lambda *items: np.maximum.reduce(np.broadcast_arrays(*items)),
    "abs": lambda item: np.abs(item),
}


def _defined(value: Any) -> Any:
    array = np.asarray(value)
    return ~np.isnan(array) if array.dtype.kind == "f" else np.True_


def _equal(left: Any, right: Any) -> Any:
    left, right = np.asarray(left), np.asarray(right)
    if (left.dtype.kind in "OUS") != (right.dtype.kind in "OUS"):
        left, right = left.astype(object), right.astype(object)
    return np.asarray(left == right, dtype=bool)


class _Reader:
    """Turns the whitelisted part of a syntax tree into functions over columns."""

    def __init__(self, text: str, knobs: Mapping[str, Any]) -> None:
        self.text, self.knobs = text, knobs
        self.names: set[str] = set()

    def read(self, node: ast.expr) -> _Evaluator:  # noqa: RET503 - refusing never returns
        match node:
            case ast.BoolOp(op=op, values=values):
                return self._logic(op, [self.read(value) for value in values])
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self.read(operand))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return self._binary(_ARITHMETIC[type(op)], self.read(left), self.read(right))
            case ast.Compare():
                return self._comparison(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._choice(self.read(test), self.read(body), self.read(orelse))
            case ast.Call():
                return self._call(node)
            case ast.Name(id=name):
                return self._name(name, node)
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return lambda _: value
            case _:
                self._refuse(node, f"{type(node).__name__} is not allowed in a restriction")

    def _refuse(self, node: ast.expr, reason: str) -> NoReturn:
        _refuse(self.text, node.col_offset + 1, reason)

    def _name(self, name: str, node: ast.expr) -> _Evaluator:
        if name not in self.knobs:
            known = ", ".join(repr(knob) for knob in self.knobs)
            self._refuse(node, f"unknown knob {name!r}; known: {known}")
        self.names.add(name)
        return lambda columns: columns[name]

    @staticmethod
    def _logic(op: ast.boolop, parts: list[_Evaluator]) -> _Evaluator:
        combine = np.logical_and if isinstance(op, ast.And) else np.logical_or

        def evaluate(columns: Mapping[str, Column]) -> Any:
            result = _truth(parts[0](columns))
            for part in parts[1:]:
                result = combine(result, _truth(part(columns)))
            return result

        return evaluate

    @staticmethod
    def _unary(op: ast.unaryop, operand: _Evaluator) -> _Evaluator:
        if isinstance(op, ast.Not):
            return lambda columns: ~_truth(operand(columns))
        if isinstance(op, ast.USub):
            return lambda columns: -_number(operand(columns))
        return lambda columns: _number(operand(columns))

    @staticmethod
    def _binary(apply: Callable[[Any, Any], Any], left: _Evaluator, right: _Evaluator) -> _Evaluator:
        return lambda columns: apply(_number(left(columns)), _number(right(columns)))

    @staticmethod
    def _choice(test: _Evaluator, body: _Evaluator, orelse: _Evaluator) -> _Evaluator:
        return lambda columns: np.where(_truth(test(columns)), body(columns), orelse(columns))

    def _call(self, node: ast.Call) -> _Evaluator:
        if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS or node.keywords:
            self._refuse(node, f"only {', '.join(_FUNCTIONS)} may be called")
        if not node.args or any(isinstance(arg, ast.Starred) for arg in node.args):
            self._refuse(node, f"{node.func.id} needs plain arguments")
        if node.func.id == "abs" and len(node.args) != 1:
            self._refuse(node, "abs takes one argument")
        function, parts = _FUNCTIONS[node.func.id], [self.read(arg) for arg in node.args]
        return lambda columns: function(*(_number(part(columns)) for part in parts))

    def _comparison(self, node: ast.Compare) -> _Evaluator:
        sides = [node.left, *node.comparators]
        steps = [self._step(op, sides[i], sides[i + 1]) for i, op in enumerate(node.ops)]
        return self._logic(ast.And(), steps)

    def _step(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> _Evaluator:
        if isinstance(op, ast.In | ast.NotIn):
            return self._membership(isinstance(op, ast.NotIn), self.read(left), right)
        first, second = self.read(left), self.read(right)
        if type(op) in _ORDER:
            compare = _ORDER[type(op)]
            return lambda columns: compare(_number(first(columns)), _number(second(columns)))
        if not isinstance(op, ast.Eq | ast.NotEq):
            self._refuse(left, f"the comparison {type(op).__name__} is not allowed; use == or !=")
        wanted = isinstance(op, ast.Eq)

        def equality(columns: Mapping[str, Column]) -> Any:
            a, b = first(columns), second(columns)
            return (_equal(a, b) == wanted) & _defined(a) & _defined(b)

        return equality

    def _membership(self, negated: bool, item: _Evaluator, collection: ast.expr) -> _Evaluator:
        if not isinstance(collection, ast.List | ast.Tuple | ast.Set) or not collection.elts:
            self._refuse(collection, "`in` needs a list of values in brackets")
        members = [self.read(element) for element in collection.elts]

        def evaluate(columns: Mapping[str, Column]) -> Any:
            value = item(columns)
            found = _equal(value, members[0](columns))
            for member in members[1:]:
                found = found | _equal(value, member(columns))
            return found != negated

        return evaluate


def value_of(text: str, configuration: Mapping[str, Any]) -> float:
    """The value of an arithmetic expression over one configuration; raises SpaceError as `parse` does."""
    source = text.strip()
    reader = _Reader(source, configuration)
    try:
        evaluate = reader.read(ast.parse(source, mode="eval").body)
    except SyntaxError as error:
        _refuse(source, _column_of(error, source), error.msg)
    columns = {name: np.array([value]) for name, value in configuration.items()}
    with np.errstate(all="ignore"):
        value = float(np.asarray(_number(evaluate(columns))).reshape(-1)[0])
    if not np.isfinite(value):
        raise SpaceError(f"{source!r} has no value for {dict(configuration)}")
    return value
