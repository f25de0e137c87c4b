"""PyTorch programs: exported, read from `.pt2` files, checked, and handed to TVM."""

import hashlib
import io
import logging
import re
import typing
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneloom.compiler.fast_import import frames_without_source, load_tvm
from tuneloom.errors import ModelError, reason_of
from tuneloom.tuners.tvm.importing.packages import needed
from tuneloom.tuners.tvm.importing.relax import (
    Converted,
    bind_shapes,
    describe_inputs,
    describe_outputs,
)
from tuneloom.tuners.tvm.importing.torch import resampling
from tuneloom.tuners.tvm.importing.torch.decomposing import decomposed
from tuneloom.tuners.tvm.importing.torch.recurrent import OPERATORS, torch_recurrent
from tuneloom.tuners.tvm.importing.torch.through_onnx import through_onnx

EXPORT_WORDS = "torch.export.save(torch.export.export(model.eval(), (x,)), 'net.pt2')"
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')


def write_module(module: Any, example_inputs: Sequence[Any], path: Path, dynamic_shapes: Any = None) -> Any:
    """Export a `torch.nn.Module` in evaluation mode to a `.pt2` file; the module stays as it was.

    Returns the exported program; `dynamic_shapes` are as for `torch.export.export`.
    Raises ModelError when torch is missing, when this is no module, or when it can't be exported.
    """
    torch = needed("torch", "a torch module")
    if not isinstance(module, torch.nn.Module):
        raise ModelError(f"not a path, zoo:NAME or torch module: {type(module).__name__}")
    if not example_inputs:
        raise ModelError("a torch module needs example inputs: from_model(module, [x])")
    modes = [(part, part.training) for part in module.modules()]
    try:
        with _silence():
            program = torch.export.export(module.eval(), tuple(example_inputs), dynamic_shapes=dynamic_shapes)
            torch.export.save(program, path)
            return program
    except Exception as error:
        raise ModelError(f"torch can't export {type(module).__name__}: {first_line(error)}") from error
    finally:
        for part, training in modes:
            part.training = training


def read_exported(path: Path, content: bytes) -> Any:
    """Load what `torch.export.save` wrote; raises ModelError that says what the file is instead."""
    _check_archive(path, content)
    torch = needed("torch", f"{path.name}: reading it")
    try:
        with _silence(), _hints_kept(), frames_without_source():
            return torch.export.load(path)
    except Exception as error:
        raise ModelError(
            f"{path}: torch {torch.__version__} can't load this program: {first_line(error)}; "
            "export it again with this version"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenProgram:
    """An exported program as a Relax module whose sizes may still be open, or why TVM can't have it."""

    program: Any
    simple: Any = None
    module: Any = None
    refusal: str | None = None


WHOLE = frozenset((*OPERATORS, *resampling.NAMES))
"""Operators that are converted as they are, though PyTorch could break them down."""

_LAST: dict[bytes, OpenProgram] = {}
"""The last program with open sizes: whoever imports it under one usually wants others, too."""


def import_exported(
    path: Path, content: bytes, shapes: Mapping[str, tuple[int, ...]], *, only_tvm: bool = False
) -> Converted:
    """An exported program as a Relax module, with its inputs and outputs.

    What TVM's importer can't take goes through ONNX, if the packages for that are installed.
    """
    load_tvm()
    digest, where = hashlib.sha256(content).digest(), path.name
    opened = _LAST.get(digest) or _opened(read_exported(path, content), where)
    _LAST.clear()
    if opened.program.range_constraints:
        _LAST[digest] = opened
    if opened.refusal is not None:
        with _silence():
            return through_onnx(opened.program, where, shapes, opened.refusal, only_tvm=only_tvm)
    module = bind_shapes(opened.module, shapes, _ranges(opened.simple), where)
    return Converted(
        module=module,
        inputs=describe_inputs(module, (), where),
        outputs=describe_outputs(module, (), where),
    )


def _opened(program: Any, where: str) -> OpenProgram:
    with _silence():
        try:
            simple = decomposed(program, _decompositions(program), WHOLE)
            _check_trained(simple, where)
            refusal = _refusal(simple)
            if refusal is not None:
                return OpenProgram(program=program, refusal=refusal)
            return OpenProgram(program=program, simple=simple, module=_module(simple))
        except ModelError:
            raise
        except Exception as error:
            reason = f"TVM can't import this program: {reason_of(error)}"
            return OpenProgram(program=program, refusal=reason)


def _importer() -> Any:
    from tuneloom.tuners.tvm.importing.torch.converting import TypedImporter

    return TypedImporter()


def _module(program: Any) -> Any:
    return _importer().from_exported_program(
        program,
        keep_params_as_input=False,
        unwrap_unit_return_tuple=True,
        no_bind_return_tuple=False,
        custom_convert_map=torch_recurrent(),
    )


def _decompositions(program: Any) -> Any:
    """What programs are broken down by; recurrent layers stay whole, unless their sizes are still open."""
    import torch

    table = torch.export.default_decompositions()
    if not program.range_constraints:
        for name in WHOLE:
            packet, overload = name.split(".")
            table.pop(getattr(getattr(torch.ops.aten, packet), overload), None)
    return table


def _check_archive(path: Path, content: bytes) -> None:
    if not content.startswith(b"PK"):
        raise ModelError(f"{path}: not a file of torch.export; write one with {EXPORT_WORDS}")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile as error:
        raise ModelError(f"{path}: damaged or truncated; copy or export it again") from error
    if any(name.endswith("/data.pkl") for name in names) and not any("models/" in name for name in names):
        raise ModelError(
            f"{path}: torch.save wrote this (weights or a pickled module), not a program; "
            f"write one with {EXPORT_WORDS}"
        )


def _check_trained(program: Any, where: str) -> None:
    """Refuse what TVM would drop without a word."""
    signature = program.graph_signature
    changed = list(signature.buffers_to_mutate.values())
    if changed:
        raise ModelError(
            f"{where}: running it changes {changed[0]!r}, as in training; call model.eval() before the export"
        )
    written = list(signature.user_inputs_to_mutate.values())
    if written:
        raise ModelError(
            f"{where}: running it changes its input {written[0]!r}; return the new value instead"
        )


def _refusal(program: Any) -> str | None:
    """What TVM would stop at without saying where."""
    known = {*_importer().convert_map, *WHOLE}
    for node in program.graph.nodes:
        if node.op == "call_function" and node.target.__name__ not in known:
            return f"TVM does not import operator {node.target.__name__} ({_place(node)})"
    return None


def _place(node: Any) -> str:
    """Where an operator is: its node, the part of the model, the line that called it."""
    parts = [f"node {node.name}"]
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    if stack and stack[-1][0]:
        parts.append(f"in {stack[-1][0]}")
    called = _PLACE.findall(node.meta.get("stack_trace") or "")
    if called:
        parts.append(f"called at {Path(called[-1][0]).name}:{called[-1][1]}")
    return ", ".join(parts)


def _ranges(program: Any) -> dict[str, tuple[int, int | None]]:
    """Between which numbers each open dimension was exported; 2 stands for any small number."""
    ranges = {}
    for symbol, values in program.range_constraints.items():
        low = _whole(values.lower) or 1  # numbers read from tensors have no bounds
        ranges[str(symbol)] = (low if low > 2 else 1, _whole(values.upper))
    return ranges


def _whole(bound: Any) -> int | None:
    """A bound as a number; None for an infinite one, of which sympy has several kinds."""
    try:
        return int(bound)
    except (OverflowError, ValueError, TypeError, AttributeError):
        return None


def first_line(error: BaseException) -> str:
    """The first line with text of an error, which is where torch puts the reason."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


@contextmanager
def _hints_kept() -> Iterator[None]:
    """PyTorch asks for the types of its few classes of nodes once a node: find them once."""
    original = typing.get_type_hints
    known: dict[Any, dict[str, Any]] = {}

    def hints(of: Any, globalns: Any = None, **options: Any) -> dict[str, Any]:
        key = (of, id(globalns), repr(options))
        if key not in known:
            known[key] = original(of, globalns, **options)
        return known[key]

    typing.get_type_hints = hints  # type: ignore[assignment]
    try:
        yield
    finally:
        typing.get_type_hints = original


@contextmanager
def _silence() -> Iterator[None]:
    """No warnings and no log lines of torch: what matters comes as an exception."""
    logger = logging.getLogger("torch.export")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
