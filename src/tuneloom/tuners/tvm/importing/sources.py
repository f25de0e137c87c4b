"""How a model comes in: from a file, or from the zoo."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneloom.errors import InputError, ModelError, reason_of
from tuneloom.model import Shapes, TensorInfo
from tuneloom.tuners.tvm.importing.onnx.cleaning import CleanGraph
from tuneloom.tuners.tvm.importing.onnx.cleaning.assembling import assembled
from tuneloom.tuners.tvm.importing.onnx.files import read_onnx
from tuneloom.tuners.tvm.importing.onnx.graphs import Trial, cleaned, import_onnx
from tuneloom.tuners.tvm.importing.relax import Converted, ForeignPart, KeptValue
from tuneloom.tuners.tvm.importing.tflite.files import import_tflite, read_tflite
from tuneloom.tuners.tvm.importing.torch.files import EXPORT_WORDS, import_exported
from tuneloom.tuners.tvm.zoo.listing import require_name, zoo_model

_ZOO = "zoo:"
_SUFFIXES = (".onnx", ".pt2", ".tflite")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedModel:
    """A model in Relax with its weights as constants; `digest` names its content.

    `notes` tell the user what was assumed on the way in.
    """

    name: str
    module: Any = field(repr=False, compare=False)
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    digest: str
    notes: tuple[str, ...] = ()
    foreign: tuple[ForeignPart, ...] = ()
    state: tuple[KeptValue, ...] = ()
    dtype: str = "float32"
    """In which type its products may be computed."""


def import_model(
    source: str,
    shapes: Shapes | None = None,
    *,
    only_tvm: bool = False,
    left: Sequence[str] = (),
    trial: Trial | None = None,
) -> ImportedModel:
    """Read `zoo:NAME` or a path ending in .onnx, .pt2 or .tflite.

    `shapes` binds dynamic inputs. What TVM can't take of an ONNX graph is left to ONNX Runtime, if
    that is installed, unless `only_tvm`; so are the nodes that are `left` there, and with a `trial` those
    that fail it. Raises ModelError, in one line, when there is no such thing, when it can't be read, or when
    TVM can't import it.
    """
    bound = dict(shapes or {})
    require_source(source)
    if source.startswith(_ZOO):
        name = source.removeprefix(_ZOO)
        proto = zoo_model(name)
        return _finish(
            name,
            import_onnx(proto, name, bound, only_tvm=only_tvm, left=left, trial=trial),
            _digest(proto.SerializeToString(), bound),
        )
    path = Path(source)
    content = path.read_bytes()
    try:
        if path.suffix == ".onnx":
            proto = read_onnx(path, content)
            converted = import_onnx(proto, path.name, bound, only_tvm=only_tvm, left=left, trial=trial)
        else:
            converted = _import_file(path, content, bound, only_tvm)
        return _finish(path.stem, converted, _digest(content, bound))
    except InputError:
        raise
    except Exception as error:  # files of strangers break rules that parsers take for granted
        why = f"{type(error).__name__}: {reason_of(error)}"
        raise ModelError(
            f"{path.name} is damaged or breaks the rules of its format ({why}); export it again"
        ) from error


def clean_graph(source: str, shapes: Shapes | None = None) -> CleanGraph:
    """The graph of an ONNX model as it is handed to TVM and cut; raises ModelError."""
    return cleaned(_onnx_of(source), source if source.startswith(_ZOO) else Path(source).name, shapes or {})


def _onnx_of(source: str) -> Any:
    if source.startswith(_ZOO):
        return zoo_model(source.removeprefix(_ZOO))
    return read_onnx(Path(source), Path(source).read_bytes())


def whole_file(
    source: str, shapes: Shapes, names: tuple[list[str], ...]
) -> tuple[bytes, str, tuple[str, ...]]:
    """All of a model for another runtime: a file in one piece, how its name ends, and its operators.

    It is the user's own, since another runtime may know operators that were replaced when the graph was
    cleaned; a cleaned one if its inputs and outputs have other `names`.
    """
    path = Path(source)
    if not source.startswith(_ZOO) and path.suffix != ".onnx":
        return path.read_bytes(), path.suffix, ("the whole model",)
    model = _onnx_of(source)
    given = {tensor.name for tensor in model.graph.initializer}
    inputs = [value.name for value in model.graph.input if value.name not in given]
    same = (inputs, [value.name for value in model.graph.output]) == names
    file = model if same else assembled(clean_graph(source, shapes))
    operators = tuple(dict.fromkeys(node.op_type for node in model.graph.node))
    return file.SerializeToString(), ".onnx", operators


def require_source(source: str) -> None:
    """Raise ModelError if there is no such file or network; cheap, nothing is read."""
    path = Path(source)
    if source.startswith(_ZOO):
        require_name(source.removeprefix(_ZOO))
        return
    if path.suffix in (".pt", ".pth"):
        raise ModelError(f"{source}: weights alone are not a model; export it: {EXPORT_WORDS}")
    if path.suffix not in _SUFFIXES:
        raise ModelError(
            f"{source}: unknown kind of model file; give a path ending in {', '.join(_SUFFIXES)} or zoo:NAME"
        )
    if path.is_dir():
        raise ModelError(f"{source}: this is a folder; give the model file in it")
    if not path.is_file():
        raise ModelError(f"{source}: no such file; check the path, or use zoo:NAME for a built-in network")


def _import_file(path: Path, content: bytes, shapes: Shapes, only_tvm: bool) -> Converted:
    if path.suffix == ".pt2":
        return import_exported(path, content, shapes, only_tvm=only_tvm)
    return import_tflite(read_tflite(path, content), path.name, shapes, only_tvm=only_tvm)


def _finish(name: str, converted: Converted, digest: str) -> ImportedModel:
    return ImportedModel(
        name=name,
        module=converted.module,
        inputs=tuple(TensorInfo(name=n, shape=s, dtype=d) for n, s, d in converted.inputs),
        outputs=tuple(TensorInfo(name=n, shape=s, dtype=d) for n, s, d in converted.outputs),
        digest=digest,
        notes=converted.notes,
        foreign=converted.foreign,
        state=converted.state,
    )


def _digest(content: bytes, shapes: Shapes) -> str:
    sha = hashlib.sha256(content)
    sha.update(repr(sorted(shapes.items())).encode())
    return sha.hexdigest()
