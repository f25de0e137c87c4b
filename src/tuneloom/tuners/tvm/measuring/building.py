"""Building one candidate: from a scheduled module to a shared object as bytes."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tuneloom.backends.finding import backend_of
from tuneloom.backends.implementers import Insert, ModelKernel
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import ms, s_tir
from tuneloom.compiler.linking import link_with
from tuneloom.compiler.target import TargetSpec
from tuneloom.model import Artifact, Failure, FailureKind
from tuneloom.tuners.tvm.importing.recurrence.meaning import steps_of
from tuneloom.tuners.tvm.lowering.payloads import unpack_kernel
from tuneloom.tuners.tvm.measuring.artifacts import BuiltKernel

_MOST_MESSAGE = 2000


def build_kernel(payload: bytes) -> Artifact | Failure:
    """Compile a packed kernel; what the compiler refuses is a failure with its first words."""
    started = time.perf_counter()
    try:
        kernel = unpack_kernel(payload)
        return _built(kernel, kernel.module, _compiled(kernel.module, kernel.target), started)
    except Exception as error:
        return Failure(kind=FailureKind.BUILD_ERROR, message=str(error).strip()[:_MOST_MESSAGE])


def build_insert(kernel: ModelKernel, insert: Insert) -> Artifact | Failure:
    """Compile what an implementer puts in the place of a kernel, alone."""
    started = time.perf_counter()
    try:
        module = load_tvm().IRModule({"main": insert.function.with_attr("global_symbol", "main")})
        compiled = _compiled(module, kernel.target)
        for code in insert.modules:
            compiled.import_module(code)
        return _built(kernel, module, compiled, started)
    except Exception as error:
        return Failure(kind=FailureKind.BUILD_ERROR, message=str(error).strip()[:_MOST_MESSAGE])


def _built(kernel: ModelKernel, module: Any, compiled: Any, started: float) -> Artifact:
    target = kernel.target
    arguments = _arguments(module)
    library, code = _shared_object(compiled, target.linker)
    lengths = 0 if kernel.meaning is None else steps_of(kernel.meaning)
    built = BuiltKernel(
        device=target.device,
        arguments=arguments,
        library=library,
        lengths=lengths,
        code=code if backend_of(target).on_host else b"",
    )
    return Artifact(
        payload=built.to_bytes(),
        features={"library_bytes": float(len(library))},
        build_s=time.perf_counter() - started,
    )


def _compiled(module: Any, target: TargetSpec) -> Any:
    tvm = load_tvm()
    with target.to_tvm() as tvm_target, tvm.transform.PassContext(config=kernel_settings(target)):
        module = s_tir.transform.RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module)
        return tvm.tirx.build(module, target=tvm_target)


def kernel_settings(target: TargetSpec) -> dict[str, Any]:
    """TVM's settings for building kernels, alone and in models.

    Checks of arguments are most of a kernel's code. Those of a trial are made for it, and a model
    checks its inputs itself before it calls its kernels.
    """
    return {"tirx.disable_assert": True, **backend_of(target).build_settings(target)}


def _arguments(module: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    infos = ms.arg_info.ArgInfo.from_entry_func(module, remove_preproc=True)
    return tuple((str(info.dtype), tuple(int(extent) for extent in info.shape)) for info in infos)


def _shared_object(built: Any, linker: str) -> tuple[bytes, bytes]:
    """The kernel as a library, and the object file in it if that is one."""
    objects: list[bytes] = []

    def link(output: str, files: Sequence[str], **more: Any) -> None:
        objects.extend(Path(file).read_bytes() for file in files)
        link_with(linker)(output, files, **more)

    with tempfile.TemporaryDirectory(prefix="tuneloom-") as folder:
        path = Path(folder) / "kernel.so"
        built.export_library(str(path), fcompile=link)
        return path.read_bytes(), objects[0] if len(objects) == 1 else b""
