"""Names of models and the files behind them; nothing is imported for that."""

import mmap
from pathlib import Path

from tuneloom.compiler.lazy import onnx
from tuneloom.model.job import ZOO

_LOCATION = b"location"


def is_zoo(source: str) -> bool:
    """Whether a source names a network of the zoo."""
    return source.startswith(ZOO)


def model_name(source: str) -> str:
    """What people call a model."""
    return source.removeprefix(ZOO) if is_zoo(source) else Path(source).stem


def source_files(source: str) -> list[Path]:
    """The files of a model: itself, and those beside it in which an ONNX file keeps its weights."""
    if is_zoo(source):
        return []
    path = Path(source)
    return [path, *(_external_data(path) if path.suffix == ".onnx" else ())]


def _external_data(path: Path) -> list[Path]:
    if not _may_have_external_data(path):
        return []
    from onnx.external_data_helper import ExternalDataInfo, uses_external_data

    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception:
        return []  # whoever imports it says what is wrong
    tensors = [t for t in model.graph.initializer if uses_external_data(t)]
    names = dict.fromkeys(ExternalDataInfo(tensor).location for tensor in tensors)
    folder = path.parent.resolve()
    # A file of a stranger may name any file: those elsewhere are not its own, and travel nowhere.
    found = [path.parent / name for name in names if (folder / name).resolve().is_relative_to(folder)]
    return [each for each in found if each.is_file()]


def _may_have_external_data(path: Path) -> bool:
    """Whether the word is in a file that says where weights are; looking is much faster than parsing."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(_LOCATION) >= 0
    except (OSError, ValueError):  # no file, or an empty one
        return False
