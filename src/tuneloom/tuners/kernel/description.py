"""Kernels described in a TOML file: the source, the knobs, the arguments, what is right."""

import hashlib
import importlib.util
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneloom.errors import SpaceError
from tuneloom.tuners.kernel.description_values import require_described
from tuneloom.tuners.kernel.kernel import Build, Kernel, Run
from tuneloom.tuners.kernel.languages.arguments import Argument, Array, Number
from tuneloom.tuners.kernel.languages.c import CBuilder, CReference, CRunner
from tuneloom.tuners.kernel.languages.cuda import CudaBuilder, CudaRunner
from tuneloom.tuners.kernel.languages.triton import TritonKernel
from tuneloom.tuners.kernel.space import Space

LANGUAGES = ("c", "cuda", "triton")
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class DescribedKernel:
    """A kernel and how its file wants it tuned.

    `fingerprint` changes with everything that a measurement depends on.
    """

    kernel: Kernel
    fingerprint: str
    tuning: Mapping[str, Any] = field(default_factory=dict)


def described(path: Path) -> DescribedKernel:
    """Read a description; raises SpaceError naming the file and the section that is wrong."""
    try:
        data = tomllib.loads(path.read_text())
    except OSError as error:
        raise SpaceError(f"{path} can't be read: {error.strerror or error}; check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpaceError(f"{path} is not TOML: {error}; give a file that describes a kernel") from None
    try:
        return _described(path, data)
    except SpaceError as error:
        raise SpaceError(f"{path}: {error}") from None


def _described(path: Path, data: dict[str, Any]) -> DescribedKernel:
    require_described(data)
    head = _section(data, "kernel")
    space = Space(_section(data, "knobs"), data.get("restrictions", {}).get("where", []), data.get("when"))
    arguments = tuple(_argument(i, given) for i, given in enumerate(data.get("arguments", [])))
    build, run = _language(path, head, arguments, data.get("launch", {}))
    kernel = Kernel(str(head.get("name", path.stem)), space, build, run)
    return DescribedKernel(kernel, _fingerprint(path, head, data), data.get("tuning", {}))


def _fingerprint(path: Path, head: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """A digest of the description, but for how to tune, and of the files that it names."""
    described = {name: section for name, section in data.items() if name != "tuning"}
    digest = hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode())
    for named in (_needed(head, "source"), str(head.get("reference", "")).rpartition(":")[0]):
        if named:
            digest.update(_source(path.parent / named).encode())
    return digest.hexdigest()[:_DIGITS]


def _section(data: dict[str, Any], name: str) -> dict[str, Any]:
    section = data.get(name)
    if not isinstance(section, dict) or not section:
        raise SpaceError(f"the section [{name}] is missing or empty")
    return section


def _needed(section: Mapping[str, Any], key: str) -> str:
    value = section.get(key)
    if not isinstance(value, str) or not value:
        raise SpaceError(f"[kernel] needs {key!r}")
    return value


def _argument(place: int, given: Mapping[str, Any]) -> Argument:
    kind = str(given.get("type", ""))
    if "value" in given:
        return Number(kind, given["value"])
    if "shape" not in given:
        raise SpaceError(f"argument {given.get('name', place)!r} needs a `shape` or a `value`")
    shape = tuple(int(size) for size in given["shape"])
    return Array(kind, shape, str(given.get("fill", "random")), bool(given.get("output", False)))


def _language(
    path: Path, head: Mapping[str, Any], arguments: tuple[Argument, ...], launch: Mapping[str, Any]
) -> tuple[Build, Run]:
    language = _needed(head, "language")
    if language not in LANGUAGES:
        raise SpaceError(f"no language {language!r}; known: {', '.join(LANGUAGES)}")
    source = _source(path.parent / _needed(head, "source"))
    entry = _needed(head, "entry")
    if language == "triton":
        file = str(path.parent / _needed(head, "source"))
        kernel = TritonKernel(file, entry, int(head.get("output", 0)))
        return kernel.build, kernel.run
    reference = _reference(path, head, source, arguments)
    tolerance = float(head.get("tolerance", 1e-3))
    if language == "c":
        builder = CBuilder(source, tuple(head.get("flags", CBuilder.flags)))
        return builder, CRunner(entry, arguments, reference, tolerance)
    cuda = CudaBuilder(source, entry, tuple(head.get("flags", ())), str(head.get("arch", "")))
    runner = CudaRunner(arguments, _sizes(launch, "grid"), _sizes(launch, "block"), reference, tolerance)
    return cuda, runner


def _source(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SpaceError(f"the source {path} can't be read: {error}") from None


def _sizes(launch: Mapping[str, Any], key: str) -> tuple[str, ...]:
    given = launch.get(key)
    if given is None:
        raise SpaceError(f"[launch] needs `{key}`: one to three expressions over the knobs")
    return tuple(str(size) for size in given)


def _reference(
    path: Path, head: Mapping[str, Any], source: str, arguments: tuple[Argument, ...]
) -> Callable[[list[Any]], Any] | None:
    named = head.get("reference")
    if named is None:
        return None
    file, _, function = str(named).rpartition(":")
    if not file:
        return CReference(source, str(named), arguments)
    return PythonReference(str(path.parent / file), function)


@dataclass(frozen=True, slots=True)
class PythonReference:
    """A function of a Python file that takes the argument values and returns the right outputs."""

    path: str
    function: str

    def __call__(self, values: list[Any]) -> list[Any]:
        """The right outputs for these values."""
        spec = importlib.util.spec_from_file_location("tuneloom_reference", self.path)
        if spec is None or spec.loader is None:
            raise SpaceError(f"the reference {self.path} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        returned = getattr(module, self.function)(*values)
        return list(returned) if isinstance(returned, list | tuple) else [returned]
