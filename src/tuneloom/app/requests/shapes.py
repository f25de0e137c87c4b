"""Shapes as people write them: one for each input, or several for a bundle that takes them all."""

from collections.abc import Mapping, Sequence
from typing import Any

from tuneloom.errors import InputError

ShapeSet = dict[str, tuple[int, ...]]


def shape_sets(given: Mapping[str, Any]) -> list[ShapeSet]:
    """One set of shapes for each variant of the model: the nth of every input belong together.

    An input has a shape (a list of sizes) or a list of shapes; one with a single shape has it in all
    sets. Raises InputError for shapes of an input that differ in rank, inputs with different numbers of
    shapes, and sets that are the same.
    """
    listed = {name: _listed(name, value) for name, value in given.items()}
    counts = {name: len(shapes) for name, shapes in listed.items() if len(shapes) > 1}
    count = max(counts.values(), default=1)
    for name, own in counts.items():
        if own != count:
            most = next(other for other, number in counts.items() if number == count)
            raise InputError(
                f"input {name!r} has {own} shapes and {most!r} has {count}; give as many for each, or one",
                field="shapes",
            )
    sets = [{name: shapes[min(n, len(shapes) - 1)] for name, shapes in listed.items()} for n in range(count)]
    for n, one in enumerate(sets):
        if one in sets[:n]:
            raise InputError(f"the same shapes are given twice: {_shown(one)}; omit one", field="shapes")
    return sets


def _listed(name: str, value: Sequence[Any]) -> list[tuple[int, ...]]:
    several = bool(value) and not isinstance(value[0], int)
    shapes = [tuple(shape) for shape in value] if several else [tuple(value)]
    if len({len(shape) for shape in shapes}) > 1:
        raise InputError(
            f"the shapes of input {name!r} differ in rank ({_texts(shapes)}); give all of them one rank",
            field="shapes",
        )
    return shapes


def _texts(shapes: Sequence[Sequence[int]]) -> str:
    return ", ".join("×".join(map(str, shape)) for shape in shapes)


def _shown(shapes: ShapeSet) -> str:
    return ", ".join(f"{name}={','.join(map(str, shape))}" for name, shape in shapes.items())
