"""What a model lowered to, kept beside the store: the second look at it takes no compiler.

A look is found again only for the same files, options, machine and program, so it never has to be
thrown away by hand. What can't be read or written is as if it were not there.
"""

import base64
import gzip
import hashlib
import json
import os
import platform
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tuneloom
from tuneloom.model import ModelRecipe, ModelSummary, ShapeVariant, Task, TensorInfo
from tuneloom.store.opening import default_place
from tuneloom.tuners.tvm.importing.naming import source_files

_PACKAGES = ("apache-tvm", "apache-tvm-ffi", "onnx")
_BYTES = ("payload", "canary")


def recall(recipe: ModelRecipe, place: str | None) -> ModelSummary | None:
    """What is known of a model from an earlier look; None if nothing is, or if it can't be read."""
    folder = _folder(place)
    if folder is None:
        return None
    try:
        data = json.loads(gzip.decompress((folder / _name(recipe)).read_bytes()))
        return _summary(data)
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None


def keep(recipe: ModelRecipe, summary: ModelSummary, place: str | None) -> None:
    """Keep what was seen of a model; without a word if there is no place for it."""
    folder = _folder(place)
    if folder is None:
        return
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / _name(recipe)
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        unfinished.write_bytes(gzip.compress(json.dumps(_data(summary)).encode(), compresslevel=3))
        unfinished.replace(path)


def _folder(place: str | None) -> Path | None:
    """Beside a store that is a file; one that is a server has no such place."""
    if place is not None and "://" in place:
        return None
    return (Path(place).expanduser() if place else default_place()).parent / "models"


def _name(recipe: ModelRecipe) -> str:
    """A name that only the same model, options, machine and program give."""
    shapes = [sorted(one.items()) for one in (recipe.shapes, *recipe.more_shapes)]
    sha = hashlib.sha256(repr((shapes, recipe.target, recipe.layout)).encode())
    sha.update(repr((recipe.only_tvm, recipe.source if recipe.source.startswith("zoo:") else "")).encode())
    for path in source_files(recipe.source):
        sha.update(path.read_bytes())
    sha.update(repr([version(package) for package in _PACKAGES]).encode())
    sha.update(repr((platform.machine(), _processor(), list(_program()))).encode())
    return f"{sha.hexdigest()[:40]}.json.gz"


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
    root = Path(tuneloom.__file__).parent / "tuners" / "tvm"
    for path in sorted(root.rglob("*.py")):
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
    lists = {name: tuple(data[name]) for name in ("notes", "foreign")}
    return ModelSummary(**{**data, **_tensors(data), **lists, "tasks": tasks, "variants": variants})


def _tensors(data: dict[str, Any]) -> dict[str, tuple[TensorInfo, ...]]:
    return {
        side: tuple(TensorInfo(**{**one, "shape": tuple(one["shape"])}) for one in data[side])
        for side in ("inputs", "outputs")
    }
