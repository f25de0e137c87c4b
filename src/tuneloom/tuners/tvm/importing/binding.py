"""The shapes of a model's inputs: from the file, from the user, and a batch of one by default."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuneloom.errors import ModelError

Dims = tuple[int | str, ...]
"""A declared shape: a number where it is fixed, a name where it is open, `?` where it has none."""

_LIKELY = {3: (1, 3, 128), 4: (1, 3, 224, 224), 2: (1, 128)}
_OPEN = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Numbers for every dimension, and which were chosen without being asked for."""

    shapes: dict[str, tuple[int, ...]]
    notes: tuple[str, ...] = ()


def bind(declared: Mapping[str, Dims | None], given: Mapping[str, tuple[int, ...]], where: str) -> Bound:
    """Bind all inputs; an open first dimension is a batch and becomes 1.

    None stands for an input that does not even say its rank. Raises ModelError for a shape
    that does not fit, and one for everything that is still open, with a command that binds it.
    """
    for name in given:
        if name not in declared:
            raise ModelError(f"{where}: there is no input {name!r}; inputs: {', '.join(declared)}")
    sizes = _named_sizes(declared, given, where)
    batch = {d[0] for n, d in declared.items() if d and n not in given and isinstance(d[0], str)} - set(sizes)
    sizes |= {name: 1 for name in batch if name != _OPEN}
    shapes: dict[str, tuple[int, ...] | None] = {}
    for name, dims in declared.items():
        shapes[name] = given.get(name) or _filled(dims, sizes)
    if any(shape is None for shape in shapes.values()):
        raise ModelError(_question(declared, given, sizes, where))
    notes = [
        f"input {name!r}: the batch ({dims[0]}) is 1; bind another with --shape {name}={_text(shapes[name])}"
        for name, dims in declared.items()
        if dims and name not in given and isinstance(dims[0], str) and (dims[0] in batch)
    ]
    return Bound(shapes={n: s for n, s in shapes.items() if s is not None}, notes=tuple(notes))


def _named_sizes(
    declared: Mapping[str, Dims | None], given: Mapping[str, tuple[int, ...]], where: str
) -> dict[str, int]:
    """What the given shapes say about named dimensions."""
    sizes: dict[str, int] = {}
    for name, shape in given.items():
        dims = declared[name]
        if dims is None:
            continue
        fits = len(dims) == len(shape) and all(
            isinstance(d, str) or d == s for d, s in zip(dims, shape, strict=True)
        )
        if not fits:
            raise ModelError(
                f"{where}: input {name!r} is ({_shown(dims)}); --shape {name}={_text(shape)} does not fit it"
            )
        for dim, size in zip(dims, shape, strict=True):
            if isinstance(dim, str) and dim != _OPEN and sizes.setdefault(dim, size) != size:
                raise ModelError(f"{where}: {dim} can't be {sizes[dim]} and {size} at once; bind it once")
    return sizes


def _filled(dims: Dims | None, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """The shape as numbers; None when something but the batch is open."""
    if dims is None:
        return None
    found: list[int] = []
    for place, dim in enumerate(dims):
        if isinstance(dim, int):
            found.append(dim)
        elif dim in sizes:
            found.append(sizes[dim])
        elif place == 0:
            found.append(1)
        else:
            return None
    return tuple(found)


def _question(
    declared: Mapping[str, Dims | None],
    given: Mapping[str, tuple[int, ...]],
    sizes: Mapping[str, int],
    where: str,
) -> str:
    """One message for all that is open, with shapes that could be meant."""
    chosen = dict(sizes)
    open_inputs = [n for n, d in declared.items() if n not in given and _filled(d, sizes) is None]
    words = ", ".join(f"input {n!r} has an unbound shape ({_shown(declared[n])})" for n in open_inputs)
    commands = " ".join(f"--shape {n}={_text(_likely(declared[n], chosen))}" for n in open_inputs)
    return f"{where}: {words}; bind it, for example with {commands}"


def _likely(dims: Dims | None, sizes: dict[str, int]) -> tuple[int, ...]:
    if dims is None:
        return _LIKELY[4]
    guesses = _LIKELY.get(len(dims), (1,) * len(dims))
    found = []
    for dim, guess in zip(dims, guesses, strict=True):
        if isinstance(dim, int):
            found.append(dim)
        elif dim == _OPEN:
            found.append(guess)
        else:
            found.append(sizes.setdefault(dim, guess))
    return tuple(found)


def _shown(dims: Dims | None) -> str:
    return "unknown" if dims is None else ",".join(map(str, dims))


def _text(shape: Sequence[int] | None) -> str:
    return ",".join(map(str, shape or ()))
