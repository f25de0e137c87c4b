"""What a model lowered to, kept in a folder: asking a second time takes no compiler.

It is found again only for the same files, options, machine and programs, so it never has to be
deleted by hand. What can't be read or written is as if it were not there.
"""

import base64
import gzip
import hashlib
import json
import os
import platform
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tuneloom
from tuneloom.backends.resolving import resolve_target
from tuneloom.model import (
    CALIBRATED,
    LayoutChoice,
    ModelRecipe,
    ModelSummary,
    Shapes,
    ShapeVariant,
    Task,
    TensorInfo,
    VaryingSizes,
)
from tuneloom.tuners.tvm.importing.naming import source_files

_PACKAGES = (
    *("apache-tvm", "apache-tvm-ffi", "onnx", "onnxruntime"),
    *("torch", "onnxscript", "tflite", "ai-edge-litert"),
)
_BYTES = ("payload", "canary")
_MOST = 200


def recall(recipe: ModelRecipe) -> ModelSummary | None:
    """What a model lowered to when it was opened before; None if it was not, or if that can't be read."""
    if not recipe.lowered_folder or recipe.dtype in CALIBRATED:  # what samples tell may have changed
        return None
    try:
        data = json.loads(gzip.decompress((Path(recipe.lowered_folder) / _name(recipe)).read_bytes()))
        return _summary(data)
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None


def keep(recipe: ModelRecipe, summary: ModelSummary) -> None:
    """Keep what a model lowered to; without a word if there is no place for it. The oldest give way."""
    if not recipe.lowered_folder or recipe.dtype in CALIBRATED:
        return
    folder = Path(recipe.lowered_folder)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / _name(recipe), gzip.compress(json.dumps(_data(summary)).encode(), compresslevel=3))
        shapes = (recipe.shapes, *recipe.more_shapes)
        (folder / _mark(recipe.source, shapes, recipe.target, recipe.only_tvm)).touch()
        _forget_old(folder)


def recall_layout(recipe: ModelRecipe) -> LayoutChoice | None:
    """The layout that was chosen for a model before; None if none was, or if that can't be read."""
    if not recipe.lowered_folder:
        return None
    try:
        return LayoutChoice(**json.loads(_chosen(recipe).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def keep_layout(recipe: ModelRecipe, choice: LayoutChoice) -> None:
    """Keep the layout that was chosen for a model; without a word if there is no place for it."""
    if recipe.lowered_folder:
        with suppress(OSError):
            Path(recipe.lowered_folder).mkdir(parents=True, exist_ok=True)
            _write(_chosen(recipe), json.dumps(asdict(choice)).encode())


def _chosen(recipe: ModelRecipe) -> Path:
    """Where the choice of a layout is kept, for the architecture that the target has now."""
    place = hashlib.blake2b(f"{_name(recipe)} {resolve_target(recipe.target).family}".encode())
    return Path(recipe.lowered_folder) / f"{place.hexdigest()[:40]}.layout"


def _write(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def was_taken(folder: str, source: str, shapes: Sequence[Shapes], target: str, only_tvm: bool) -> bool:
    """Whether a model was imported and lowered before under these shapes, whatever else was asked for."""
    try:
        return bool(folder) and (Path(folder) / _mark(source, shapes, target, only_tvm)).is_file()
    except OSError:
        return False


def _forget_old(folder: Path) -> None:
    paths = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    for path in paths[:-_MOST]:
        path.unlink(missing_ok=True)


def _name(recipe: ModelRecipe) -> str:
    """A name that only the same model, options, machine and programs give."""
    shapes = (recipe.shapes, *recipe.more_shapes)
    digest = _asked(recipe.source, shapes, recipe.target, recipe.only_tvm)
    digest.update(repr((recipe.layout, recipe.cores, recipe.left, recipe.dtype, recipe.state)).encode())
    if recipe.ranges:
        digest.update(repr((sorted(recipe.ranges.items()), recipe.trials, recipe.asked)).encode())
    return f"{digest.hexdigest()[:40]}.json.gz"


def _mark(source: str, shapes: Sequence[Shapes], target: str, only_tvm: bool) -> str:
    return f"{_asked(source, shapes, target, only_tvm).hexdigest()[:40]}.taken"


def _asked(source: str, shapes: Sequence[Shapes], target: str, only_tvm: bool) -> Any:
    digest = hashlib.blake2b(repr(([sorted(one.items()) for one in shapes], target, only_tvm)).encode())
    digest.update((source if source.startswith("zoo:") else Path(source).suffix).encode())
    for path in source_files(source):
        digest.update(path.read_bytes())
    digest.update(repr((surroundings(), list(_program()))).encode())
    return digest


def surroundings() -> tuple[str, ...]:
    """The machine and the packages that decide what becomes of a model."""
    return (platform.machine(), _processor(), *map(_version, _PACKAGES))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    """What code for this very CPU depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    wanted = ("flags", "Features", "model name", "CPU part", "CPU implementer")
    return repr(sorted({line for line in lines if line.startswith(wanted)}))


def _program() -> Iterable[tuple[str, int, int]]:
    """The files that import and lower models, as they are now."""
    root = Path(tuneloom.__file__).parent
    for room in ("backends", "compiler", "tuners/tvm"):
        for path in sorted((root / room).rglob("*.py")):
            found = path.stat()
            yield str(path.relative_to(root)), found.st_size, found.st_mtime_ns


def _data(summary: ModelSummary) -> dict[str, Any]:
    data = asdict(summary)
    for part in (data, *data["tasks"]):
        for name in _BYTES:
            if name in part:
                part[name] = base64.b64encode(part[name]).decode()
    return data


def _summary(data: dict[str, Any]) -> ModelSummary:
    for part in (data, *data["tasks"]):
        for name in _BYTES:
            if name in part:
                part[name] = base64.b64decode(part[name])
    tasks = tuple(Task(**task) for task in data["tasks"])
    variants = tuple(ShapeVariant(**_tensors(one), foreign=tuple(one["foreign"])) for one in data["variants"])
    lists = {name: tuple(data[name]) for name in ("notes", "foreign", "state", "relatives", "layouts")}
    sizes = data["sizes"] and VaryingSizes.from_json(data["sizes"])
    known = {"tasks": tasks, "variants": variants, "sizes": sizes}
    return ModelSummary(**{**data, **_tensors(data), **lists, **known})


def _tensors(data: dict[str, Any]) -> dict[str, tuple[TensorInfo, ...]]:
    return {
        side: tuple(TensorInfo(**{**one, "shape": tuple(one["shape"])}) for one in data[side])
        for side in ("inputs", "outputs")
    }
