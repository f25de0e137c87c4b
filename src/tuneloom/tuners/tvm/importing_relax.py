"""What the importers of all formats share: reading an interface off a Relax function."""

from collections.abc import Sequence
from typing import Any

from tuneloom.errors import ModelError

Described = list[tuple[str, tuple[int, ...], str]]


def describe_inputs(module: Any, names: Sequence[str], where: str) -> Described:
    """Names, static shapes and types of main's inputs, under the names users know."""
    params = module["main"].params
    found = [str(param.name) for param in params]
    shown = list(names) if len(names) == len(found) else found
    return [
        (name, static_shape(param.ty, f"input {name!r}", where), str(param.ty.dtype))
        for name, param in zip(shown, params, strict=True)
    ]


def describe_outputs(module: Any, names: Sequence[str], where: str) -> Described:
    """Names, static shapes and types of what main returns."""
    result = module["main"].ret_ty
    fields = list(result.fields) if hasattr(result, "fields") else [result]
    shown = list(names) if len(names) == len(fields) else [f"output_{i}" for i in range(len(fields))]
    return [
        (name, static_shape(one, f"output {name!r}", where), str(one.dtype))
        for name, one in zip(shown, fields, strict=True)
    ]


def static_shape(tensor: Any, what: str, where: str) -> tuple[int, ...]:
    """The shape as numbers; raises ModelError when some extent is still open."""
    shape = getattr(tensor, "shape", None)
    if shape is None or not hasattr(shape, "values"):
        raise ModelError(f"{where}: the shape of {what} is unknown; bind all inputs with --shape name=…")
    extents = [getattr(extent, "value", None) for extent in shape.values]
    if any(extent is None for extent in extents):
        raise ModelError(
            f"{where}: the shape of {what} depends on {list(shape.values)}; bind it with --shape name=…"
        )
    return tuple(int(str(extent)) for extent in extents)


def one_line(error: BaseException) -> str:
    """The last line with text of an error, which is where compilers put the reason."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
