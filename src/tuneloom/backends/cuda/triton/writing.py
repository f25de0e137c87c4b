"""Writes kernels: values at places become lines of Triton, read through any chain of views."""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tuneloom.backends.cuda.code import Argument
from tuneloom.backends.cuda.triton.claims import Unfit
from tuneloom.backends.cuda.triton.coordinates import (
    Coordinate,
    Place,
    Variable,
    masks,
    offset,
    regrouped,
    reshaped,
    text_of,
)
from tuneloom.backends.cuda.triton.expressions import POINTERS, TYPES, expression, is_float
from tuneloom.backends.cuda.triton.gathering import GATHERS, Roll, rolled
from tuneloom.backends.cuda.triton.programs import KernelText
from tuneloom.backends.meaning import VIEWS, Meaning, MeaningStep, TensorType

_RESHAPES = frozenset(("relax.reshape", "relax.flatten", "relax.squeeze", "relax.expand_dims"))
_LARGEST = 2**31
_MOST_BLOCKS = 65535
_HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"


class Draft:
    """A kernel being written: its lines, and which values of the meaning have names already.

    `operators` are operators that a template writes itself, as functions of value and place. `conditions`
    are masks of everything that is read while they are there. Through a reshape that cuts loop variables,
    elements are counted if they may be `anywhere`.
    """

    def __init__(self, meaning: Meaning, scratch: Sequence[str] = (), *, anywhere: bool = False) -> None:
        _require_types(meaning)
        self.meaning = meaning
        self._anywhere = anywhere
        self.operators: dict[str, Callable[[int, Place], str]] = {}
        self.conditions: list[str] = []
        self.arguments = (
            *(Argument("input", number, each.dtype) for number, each in enumerate(meaning.inputs)),
            *(
                Argument("output", number, meaning.type_of(value).dtype)
                for number, value in enumerate(meaning.outputs)
            ),
            *(Argument("scratch", number, dtype) for number, dtype in enumerate(scratch)),
        )
        self._lines: list[str] = []
        self._scopes: list[dict[tuple[int, Place, tuple[str, ...]], str]] = [{}]
        self._known: dict[int, tuple[Place, str]] = {}
        self._names = 0

    def line(self, text: str) -> None:
        """Add a line."""
        self._lines.append("    " * len(self._scopes) + text)

    def named(self, text: str) -> str:
        """Add a line that gives an expression a name; returns the name."""
        self._names += 1
        self.line(f"v{self._names} = {text}")
        return f"v{self._names}"

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A loop or condition; values read inside are not known behind it."""
        self.line(head)
        self._scopes.append({})
        yield
        self._scopes.pop()

    def read(self, value: int, place: Place) -> str:
        """A value at a place, floating point as float32; raises Unfit if it can't be written."""
        key = (value, place, tuple(self.conditions))
        for scope in self._scopes:
            if key in scope:
                return scope[key]
        text = self._written(value, place)
        self._scopes[-1][key] = text
        return text

    def raw(self, value: int, place: Place, other: str = "0.0") -> str:
        """A value in its own type, as the operand of a product; zero outside of its tensor."""
        source = self.source(value, place)
        dtype = self.meaning.type_of(value).dtype
        if source is not None and source[0] not in self._known:
            value, place = source
            return self.load(f"input{value}", self.meaning.inputs[value], place, other)
        text = f"{self.read(value, place)}.to({TYPES[dtype]})"
        valid = " & ".join(masks(place))
        return self.named(f"tl.where({valid}, {text}, 0.0).to({TYPES[dtype]})" if valid else text)

    def know(self, value: int, place: Place, text: str) -> None:
        """Say that a value is computed: what depends on it is written by `finish`."""
        self._known[value] = (place, text)

    def forget(self, value: int) -> None:
        """Say that a value is not known any more behind the loop in which it was."""
        del self._known[value]

    def forget_all(self) -> None:
        """Say that nothing is known any more: what follows computes the same elsewhere."""
        self._known.clear()

    def finish(self) -> None:
        """Write every step behind the known values, and store the outputs."""
        count = len(self.meaning.inputs)
        for value, step in enumerate(self.meaning.steps, count):
            depends = [each for each in step.operands if each in self._known]
            if depends and value not in self._known:
                self.know(value, *self._advanced(value, step, depends))
        for number, value in enumerate(self.meaning.outputs):
            if value not in self._known:
                raise Unfit(f"output {number} does not depend on the kernel's main step")
            self.store(number, *self._known[value])

    def store(self, number: int, place: Place, text: str) -> None:
        """Store an output at a place."""
        self.write(f"output{number}", self.meaning.type_of(self.meaning.outputs[number]), place, text)

    def write(self, pointer: str, tensor: TensorType, place: Place, text: str) -> None:
        """Store something at a place of any tensor."""
        valid = " & ".join(masks(place))
        mask = f", mask={valid}" if valid else ""
        cast = f"({text}).to({TYPES[tensor.dtype]})"
        self.line(f"tl.store({pointer} + {offset(place, tensor.shape)}, {cast}{mask})")

    def load(self, pointer: str, tensor: TensorType, place: Place, other: str = "0.0") -> str:
        """Name what is at a place of any tensor, in its own type; `other` where the place is not valid."""
        valid = " & ".join((*masks(place), *self.conditions))
        zero = other if is_float(tensor.dtype) else "0"
        mask = f", mask={valid}, other={zero}" if valid else ""
        return self.named(f"tl.load({pointer} + {offset(place, tensor.shape)}{mask})")

    def text(
        self,
        prefix: str,
        grid: tuple[int, int, int],
        *,
        warps: int,
        stages: int = 1,
        arguments: Sequence[Argument] = (),
    ) -> KernelText:
        """The finished kernel; its name has a digest of all that it is compiled from."""
        if max(grid[1:]) > _MOST_BLOCKS:
            raise Unfit(f"a grid of {grid} blocks")
        given = tuple(arguments) or self.arguments
        body = f"({', '.join(each.name for each in given)}):\n" + "\n".join(self._lines) + "\n"
        seed = f"{body}{warps} {stages} {[each.dtype for each in given]}"
        name = f"{prefix}_{hashlib.sha256(seed.encode()).hexdigest()[:16]}"
        source = f"{_HEAD}def {name}{body}"
        return KernelText(name=name, source=source, arguments=given, grid=grid, warps=warps, stages=stages)

    def _written(self, value: int, place: Place) -> str:
        if value in self._known:
            known, text = self._known[value]
            if known != place:
                raise Unfit(f"value {value} is needed elsewhere than it is computed")
            return text
        step = self.meaning.step_of(value)
        if step is None:
            tensor = self.meaning.inputs[value]
            return self._as_computed(self.load(f"input{value}", tensor, place), tensor.dtype)
        if step.operator in self.operators:
            return self.operators[step.operator](value, place)
        if step.operator == "relax.const":
            return number_text(step)
        roll = rolled(self.meaning, step)
        if roll is not None:
            return self.read(roll.source, self._rolled(roll, place))
        if step.operator in GATHERS:
            return GATHERS[step.operator](self, value, step, place)
        if step.operator in VIEWS:
            return self.read(step.operands[0], self._behind(step, place))
        operands = [
            self.read(each, _broadcast(place, self._rank(each), self._shape(each))) for each in step.operands
        ]
        return self._computed(step, operands)

    def _computed(self, step: MeaningStep, operands: Sequence[str]) -> str:
        types = [self.meaning.type_of(each) for each in step.operands]
        last = self.meaning.step_of(step.operands[-1])
        exponent = last.attributes["value"] if last is not None and last.operator == "relax.const" else None
        text = expression(step, types, operands, exponent)
        if text is None:
            raise Unfit(f"{step.operator} is not elementwise")
        return self.named(text)

    def _advanced(self, value: int, step: MeaningStep, depends: Sequence[int]) -> tuple[Place, str]:
        """Place and text of a step behind known values."""
        place, text = self._known[depends[0]]
        if step.operator in VIEWS:
            return self._ahead(step, place), text
        shape = self._shape(value)
        if any(_core(self._shape(each)) != _core(shape) for each in depends):
            raise Unfit(f"{step.operator} broadcasts what is computed")
        here = (Coordinate(),) * (len(shape) - len(place)) + place[max(len(place) - len(shape), 0) :]
        operands = [
            self._known[each][1]
            if each in self._known
            else self.read(each, _broadcast(here, self._rank(each), self._shape(each)))
            for each in step.operands
        ]
        if any(_dense(self._known[each][0]) != _dense(here) for each in depends):
            raise Unfit(f"{step.operator} joins values of different places")
        return here, self._computed(step, operands)

    def source(self, value: int, place: Place) -> tuple[int, Place] | None:
        """The input behind a chain of views, with the place there; None if something is computed."""
        step = self.meaning.step_of(value)
        if step is None:
            return value, place
        roll = rolled(self.meaning, step)
        if roll is not None:
            return self.source(roll.source, self._rolled(roll, place))
        return self.source(step.operands[0], self._behind(step, place)) if step.operator in VIEWS else None

    def _rolled(self, roll: Roll, place: Place) -> Place:
        """The place before elements of an axis were moved round."""
        old = place[roll.axis]
        valid = masks((old,))
        mask = self.named(" & ".join(valid)) if len(valid) > 1 else "".join(valid)
        number = self.named(f"({text_of(old)} + {roll.shift}) % {roll.extent}")
        new = Variable(number, roll.extent, mask).whole()
        return (*place[: roll.axis], new, *place[roll.axis + 1 :])

    def _behind(self, step: MeaningStep, place: Place) -> Place:
        """The place in a view's operand."""
        shape = self._shape(step.operands[0])
        if step.operator in _RESHAPES:
            found = reshaped(place, step.result.shape, shape)
            if found is None and self._anywhere:
                return self._counted(place, step.result.shape, shape)
            if found is None:
                raise Unfit(f"{step.operator} to {step.result.shape} can't be read in place")
            return found
        if step.operator == "relax.permute_dims":
            axes = _axes(step, len(shape))
            return tuple(place[axes.index(axis)] for axis in range(len(shape)))
        if step.operator == "relax.broadcast_to":
            return _broadcast(place, len(shape), shape)
        return _sliced(step, place)

    def _counted(self, place: Place, before: Sequence[int], after: Sequence[int]) -> Place:
        """The place in a reshaped tensor by the number of its element, which is divided anew."""
        valid = masks(place)
        number = self.named(offset(place, before))
        mask = self.named(" & ".join(valid)) if valid else ""
        found = regrouped((Variable(number, math.prod(before), mask).whole(),), after)
        if found is None:
            raise Unfit(f"an element of {tuple(before)} in {tuple(after)}")
        return found

    def _ahead(self, step: MeaningStep, place: Place) -> Place:
        """The place in a view of something computed."""
        if step.operator in _RESHAPES:
            found = regrouped(place, step.result.shape)
            if found is None:
                raise Unfit(f"{step.operator} to {step.result.shape} can't be written in place")
            return found
        if step.operator == "relax.permute_dims":
            return tuple(place[axis] for axis in _axes(step, len(place)))
        raise Unfit(f"{step.operator} behind what is computed")

    def _as_computed(self, text: str, dtype: str) -> str:
        return self.named(f"{text}.to(tl.float32)") if is_float(dtype) and dtype != "float32" else text

    def _shape(self, value: int) -> tuple[int, ...]:
        return self.meaning.type_of(value).shape

    def _rank(self, value: int) -> int:
        return len(self._shape(value))


def number_text(step: MeaningStep) -> str:
    """A constant as Triton writes it."""
    value: Any = step.attributes["value"]
    if not is_float(step.result.dtype):
        return str(int(value))
    number = float(value)
    return repr(number) if math.isfinite(number) else f'float("{number}")'


def constant_of(meaning: Meaning, value: int) -> float | None:
    """The number that a value is, if it is a constant."""
    step = meaning.step_of(value)
    return float(step.attributes["value"]) if step is not None and step.operator == "relax.const" else None


def dependants(meaning: Meaning, values: frozenset[int]) -> frozenset[int]:
    """The values themselves and everything computed from them."""
    found = set(values)
    for value, step in enumerate(meaning.steps, len(meaning.inputs)):
        if found & set(step.operands):
            found.add(value)
    return frozenset(found)


def _axes(step: MeaningStep, rank: int) -> list[int]:
    axes: Sequence[int] | None = step.attributes.get("axes")
    return [axis % rank for axis in axes] if axes else list(reversed(range(rank)))


def _sliced(step: MeaningStep, place: Place) -> Place:
    attributes: Mapping[str, Any] = step.attributes
    result = list(place)
    strides = attributes.get("strides") or [1] * len(attributes["axes"])
    for axis, begin, stride in zip(attributes["axes"], attributes["begin"], strides, strict=True):
        old = result[axis]
        if begin < 0 or stride < 1:
            raise Unfit("a slice from the end")
        result[axis] = Coordinate(old.digits, old.scale * stride, old.shift * stride + begin)
    return tuple(result)


def _broadcast(place: Place, rank: int, shape: Sequence[int]) -> Place:
    """The place in a smaller tensor that is broadcast to the one of `place`."""
    lowest = place[len(place) - rank :] if rank else ()
    return tuple(Coordinate() if extent == 1 else each for each, extent in zip(lowest, shape, strict=True))


def _core(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape without its leading ones."""
    return tuple(shape[next((i for i, extent in enumerate(shape) if extent > 1), len(shape)) :])


def _dense(place: Place) -> tuple[Coordinate, ...]:
    return tuple(each for each in place if each.digits)


def _require_types(meaning: Meaning) -> None:
    tensors = (*meaning.inputs, *(step.result for step in meaning.steps))
    for each in tensors:
        if each.dtype not in POINTERS:
            raise Unfit(f"numbers of type {each.dtype}")
        if math.prod(each.shape) >= _LARGEST:
            raise Unfit(f"a tensor of shape {each.shape}")
