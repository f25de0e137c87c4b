"""What the importers of all formats share: reading an interface off a Relax function."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuneloom.compiler.lazy import relax
from tuneloom.errors import ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignPart:
    """A part of a model for another runtime: the function that runs it, and its graph as bytes."""

    function: str
    operators: tuple[str, ...]
    content: bytes = field(repr=False)
    runtime: str = "onnxruntime"
    whole: bool = False
    """Whether it is all of the model, with the same inputs and outputs."""
    suffix: str = ".onnx"
    """How a file with its content ends."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptValue:
    """A value that a model keeps from one run to the next: the output becomes the input of the next run."""

    input: str
    output: str
    initial: Any = field(repr=False)

    @property
    def entry(self) -> dict[str, Any]:
        """As bundles tell of it; a value that is the same everywhere is one number."""
        same = bool((self.initial == self.initial.flat[0]).all()) if self.initial.size else False
        initial = self.initial.flat[0].item() if same else self.initial.tolist()
        return {"input": self.input, "output": self.output, "initial": initial}


Described = list[tuple[str, tuple[int, ...], str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A model in Relax, its interface, and what its user should know about how it came in."""

    module: Any = field(repr=False, compare=False)
    inputs: Described
    outputs: Described
    notes: tuple[str, ...] = ()
    foreign: tuple[ForeignPart, ...] = ()
    state: tuple[KeptValue, ...] = ()


def describe_inputs(module: Any, names: Sequence[str], where: str) -> Described:
    """Names, static shapes and types of main's inputs, under the names users know."""
    params = module["main"].params
    found = [str(param.name) for param in params]
    shown = list(names) if len(names) == len(found) else found
    return [
        (name, static_shape(param.ty, f"input {name!r}", where), str(param.ty.dtype))
        for name, param in zip(shown, params, strict=True)
    ]


def describe_outputs(
    module: Any, names: Sequence[str], where: str, *, may_be_open: bool = False
) -> Described:
    """Names, shapes and types of what main returns; -1 for a size that depends on data, if that may be."""
    result = module["main"].ret_ty
    fields = list(result.fields) if hasattr(result, "fields") else [result]
    shown = list(names) if len(names) == len(fields) else [f"output_{i}" for i in range(len(fields))]
    for name, one in zip(shown, fields, strict=True):
        if not hasattr(one, "dtype"):
            raise ModelError(f"{where}: the type of output {name!r} is not known; export without it")
    return [
        (
            name,
            _open_shape(one) if may_be_open else static_shape(one, f"output {name!r}", where),
            str(one.dtype),
        )
        for name, one in zip(shown, fields, strict=True)
    ]


def _open_shape(tensor: Any) -> tuple[int, ...]:
    extents = getattr(getattr(tensor, "shape", None), "values", None)
    if extents is None:
        return (-1,) * max(1, int(tensor.ndim))
    return tuple(int(extent.value) if hasattr(extent, "value") else -1 for extent in extents)


def static_shape(tensor: Any, what: str, where: str) -> tuple[int, ...]:
    """The shape as numbers; raises ModelError when some extent is still open."""
    shape = getattr(tensor, "shape", None)
    if shape is None or not hasattr(shape, "values"):
        raise ModelError(f"{where}: the shape of {what} is unknown; bind all inputs with --shape name=…")
    extents = [getattr(extent, "value", None) for extent in shape.values]
    if any(extent is None for extent in extents):
        remedy = ",".join("1" if extent is None else str(extent) for extent in extents)
        name = what.removeprefix("input ").strip("'") if what.startswith("input ") else "NAME"
        raise ModelError(
            f"{where}: {what} has an unbound shape ({_shown(shape.values)}); "
            f"bind it with --shape {name}={remedy}"
        )
    return tuple(int(str(extent)) for extent in extents)


def bind_shapes(
    module: Any,
    shapes: Mapping[str, tuple[int, ...]],
    ranges: Mapping[str, tuple[int, int | None]],
    where: str,
) -> Any:
    """The module with its open dimensions replaced by numbers.

    `ranges` are the least and greatest size of an open dimension, by its name. Raises
    ModelError for an input that is not there, a shape that does not fit, and a size out of range.
    """
    open_inputs = {str(param.name): param.ty for param in module["main"].params}
    sizes: dict[str, int] = {}
    for name, given in shapes.items():
        if name not in open_inputs:
            raise ModelError(f"{where}: there is no input {name!r}; inputs: {', '.join(open_inputs)}")
        for dim, size in _open_dims(name, open_inputs[name], given, where):
            if sizes.setdefault(dim, size) != size:
                raise ModelError(f"{where}: {dim} can't be {sizes[dim]} and {size} at once; bind it once")
            _check_range(name, dim, size, ranges.get(dim, (1, None)), where)
    return relax.transform.BindSymbolicVars(sizes)(module) if sizes else module


def _open_dims(name: str, tensor: Any, given: tuple[int, ...], where: str) -> list[tuple[str, int]]:
    """The open dimensions of an input with the size each is given."""
    extents = list(tensor.shape.values)
    fits = len(extents) == len(given) and all(
        not hasattr(extent, "value") or int(extent.value) == size
        for extent, size in zip(extents, given, strict=True)
    )
    if not fits:
        wanted = ",".join(map(str, given))
        raise ModelError(
            f"{where}: input {name!r} is ({_shown(extents)}); --shape {name}={wanted} does not fit it"
        )
    return [
        (str(extent.name), size)
        for extent, size in zip(extents, given, strict=True)
        if hasattr(extent, "name")
    ]


def _check_range(name: str, dim: str, size: int, allowed: tuple[int, int | None], where: str) -> None:
    low, high = allowed
    if size < low or (high is not None and size > high):
        most = "any number" if high is None else str(high)
        raise ModelError(
            f"{where}: {dim} of input {name!r} was exported for {low} to {most}, not {size}; "
            "choose another --shape"
        )


def _shown(extents: Sequence[Any]) -> str:
    return ",".join(str(getattr(extent, "value", extent)) for extent in extents)
