"""Kernels as bytes, so that functions nobody can import reach other processes.

Functions of a script or a notebook travel by value, those of a module by name; the
folders in which modules are looked for travel along. Every stage gets the part it needs.
"""

import os
import pickle
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import cloudpickle

from tuneloom.model import Task
from tuneloom.tuners.kernel.kernel import Build, Kernel, Run
from tuneloom.tuners.kernel.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Cargo:
    """The parts of a kernel; those that a stage does not need are empty."""

    paths: tuple[str, ...]
    space: bytes = b""
    build: bytes = b""
    run: bytes = b""


def task_of(kernel: Kernel, fingerprint: str = "") -> Task:
    """The kernel as a task; the fingerprint tells it from others of its name."""
    cargo = Cargo(
        paths=_paths(),
        space=cloudpickle.dumps(kernel.space),
        build=cloudpickle.dumps(kernel.build),
        run=cloudpickle.dumps((kernel.run, kernel.check)),
    )
    return Task(
        key=f"kernel:{kernel.name}{fingerprint and ':'}{fingerprint}",
        name=kernel.name,
        shapes=" x ".join(str(count) for count in kernel.space.shape),
        kernel_class="kernel",
        payload=pickle.dumps(cargo),
    )


def for_build(task: Task) -> Task:
    """The task with what building needs."""
    return _with(task, replace(_cargo(task.payload), space=b"", run=b""))


def for_profile(task: Task) -> Task:
    """The task with what running and checking need."""
    return _with(task, replace(_cargo(task.payload), space=b"", build=b""))


def for_search(task: Task) -> Task:
    """The task with what searching needs."""
    return _with(task, replace(_cargo(task.payload), build=b"", run=b""))


def space_of(task: Task) -> Space:
    """The space of a task's kernel."""
    cargo = _cargo(task.payload)
    return cast(Space, _unpacked(cargo.paths, cargo.space))


def builder_of(task: Task) -> Build:
    """The builder of a task's kernel."""
    cargo = _cargo(task.payload)
    return cast(Build, _unpacked(cargo.paths, cargo.build))


def runner_of(task: Task) -> tuple[Run, Any]:
    """The runner of a task's kernel, and how its output is checked."""
    cargo = _cargo(task.payload)
    return cast(tuple[Run, Any], _unpacked(cargo.paths, cargo.run))


def kernel_bytes(kernel: Kernel) -> bytes:
    """A whole kernel; raises what pickling raises."""
    return pickle.dumps((_paths(), cloudpickle.dumps(kernel)))


def kernel_from(data: bytes) -> Kernel:
    """What `kernel_bytes` made; raises what unpickling and importing raise."""
    paths, packed = pickle.loads(data)
    return cast(Kernel, _unpacked(paths, packed))


def _paths() -> tuple[str, ...]:
    return tuple(os.path.abspath(path) for path in sys.path)


def _with(task: Task, cargo: Cargo) -> Task:
    return replace(task, payload=pickle.dumps(cargo))


@lru_cache(maxsize=8)
def _cargo(payload: bytes) -> Cargo:
    return cast(Cargo, pickle.loads(payload))


@lru_cache(maxsize=8)
def _unpacked(paths: tuple[str, ...], part: bytes) -> Any:
    sys.path += [path for path in paths if path not in sys.path]
    return cloudpickle.loads(part)
