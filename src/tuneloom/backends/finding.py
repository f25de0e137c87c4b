"""Backends by name: ours and those that other packages bring, registered as `tuneloom.backends`."""

from functools import cache
from importlib.metadata import entry_points

from tuneloom.backends.base import Backend
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import TargetError

GROUP = "tuneloom.backends"
ELSEWHERE = {"vta": "tuneloom-vta"}
"""Our backends that are packages of their own: the target, and the package to install."""


@cache
def backend_named(name: str) -> Backend:
    """The backend registered under this name; raises TargetError if there is none, or it can't be loaded."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        raise TargetError(f"no backend named {name!r}; known: {', '.join(sorted(found))}")
    try:
        backend: Backend = found[name].load()
    except Exception as error:  # somebody else's package may fail in any way
        raise TargetError(
            f"backend {name!r} can't be loaded: {error}; update or remove its package"
        ) from error
    return backend


@cache
def backend_for(kind: str) -> Backend:
    """The backend whose name or kind of TVM target this is; raises TargetError if nobody's."""
    names = sorted({point.name for point in entry_points(group=GROUP)})
    if kind in names:
        return backend_named(kind)
    for name in names:
        if kind in backend_named(name).kinds:
            return backend_named(name)
    if kind in ELSEWHERE:
        raise TargetError(
            f"target {kind!r} needs the package {ELSEWHERE[kind]}; pip install {ELSEWHERE[kind]}, "
            f"or in a clone of Tuneloom pip install accelerators/{kind}"
        )
    known = ", ".join(repr(name) for name in names)
    raise TargetError(f"unknown target {kind!r}; known: {known}, or a TVM target in JSON")


def backend_of(target: TargetSpec) -> Backend:
    """The backend that resolved a target."""
    return backend_named(target.backend)


def all_backends() -> list[Backend]:
    """Every backend that is installed and can be loaded."""
    found = []
    for name in sorted({point.name for point in entry_points(group=GROUP)}):
        try:
            found.append(backend_named(name))
        except TargetError:
            continue
    return found
