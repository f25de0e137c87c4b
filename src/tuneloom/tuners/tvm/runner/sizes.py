"""A dimension that varies."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tuneloom.tuners.tvm.runner.asked import SizeLog
from tuneloom.tuners.tvm.runner.padding import filled, joined, padded_to
from tuneloom.tuners.tvm.runner.refused import Refused
from tuneloom.tuners.tvm.runner.tensors import is_tensor


class Sizes:
    """A dimension that varies: which programs run a size, on which rows, and how their outputs are joined.

    A size runs in its own program, in a larger one with zeros after its end, or in several, one after the
    other. The manifest's table says which, from what each program takes.
    """

    def __init__(self, manifest: dict[str, Any], folder: Path | None = None) -> None:
        told = manifest["sizes"]
        self.low, self.high = told["low"], told["high"]
        self._programs, self._table = told["programs"], told["table"]
        self._axes: dict[str, list[int]] = told["inputs"]
        self._infos = manifest["inputs"]
        outputs = [told["outputs"].get(info["name"], []) for info in manifest["outputs"]]
        self._outputs = [dict(map(tuple, axes)) for axes in outputs]
        self._log = None if folder is None else SizeLog(folder)

    def run(self, values: Sequence[Any], program: Callable[[int, list[Any]], list[Any]]) -> list[Any]:
        """All outputs; `program` runs the program of this number on values that have its shapes."""
        size = self.size_of(values)
        if self._log is not None:
            self._log.note(size)
        runs, begin, made = self._table[size - self.low], 0, []
        for number in runs:
            count = min(self._programs[number], size - begin)
            rows = [self._rows(value, info, begin, count) for value, info in self._pairs(values)]
            full = [self._filled(row, info, number) for row, info in self._pairs(rows)]
            outputs = program(number, full)
            made.append([self._kept(out, n, count, number) for n, out in enumerate(outputs)])
            begin += count
        return [
            joined(parts, axes) for parts, axes in zip(zip(*made, strict=True), self._outputs, strict=True)
        ]

    def size_of(self, values: Sequence[Any]) -> int:
        """The size of the dimension that varies; refused if out of range or not the same everywhere."""
        found: dict[int, str] = {}
        for value, info in self._pairs(values):
            name, varying = info["name"], self._axes.get(info["name"], ())
            shape = tuple(value.shape)
            if len(shape) != len(info["shape"]):
                raise Refused(f"{name} has {len(shape)} dimensions; it must have {len(info['shape'])}")
            for axis, (size, wanted) in enumerate(zip(shape, info["shape"], strict=True)):
                if axis in varying and not self.low <= size <= self.high:
                    raise Refused(f"dimension {axis} of {name} must be {self.low} to {self.high}, got {size}")
                if axis not in varying and size != wanted:
                    raise Refused(f"dimension {axis} of {name} must be {wanted}, got {size}")
                if axis in varying:
                    found.setdefault(size, f"{name} has {size} in dimension {axis}")
        if len(found) > 1:
            raise Refused(f"{' and '.join(found.values())}; give them the same size")
        return next(iter(found))

    def _pairs(self, values: Sequence[Any]) -> Any:
        return zip(values, self._infos, strict=True)

    def _rows(self, value: Any, info: dict[str, Any], begin: int, count: int) -> Any:
        for axis in self._axes.get(info["name"], ()):
            if value.shape[axis] != count:
                value = value[(slice(None),) * axis + (slice(begin, begin + count),)]
        return value

    def _filled(self, value: Any, info: dict[str, Any], number: int) -> Any:
        varying, size = self._axes.get(info["name"], ()), self._programs[number]
        shape = [size if axis in varying else own for axis, own in enumerate(info["shape"])]
        return filled(value, shape) if is_tensor(value) else padded_to(value, shape, info["dtype"])

    def _kept(self, output: Any, place: int, count: int, number: int) -> Any:
        if count == self._programs[number]:
            return output
        for axis, factor in self._outputs[place].items():
            output = output[(slice(None),) * axis + (slice(factor * count),)]
        return output
