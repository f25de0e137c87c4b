"""Compiles kernels to machine code for a named architecture; no GPU is needed or touched."""

import linecache
import re
from collections.abc import Iterator
from math import prod
from typing import Any

from tuneloom.backends.cuda.code import Argument, DeviceCode, Launch
from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.expressions import POINTERS
from tuneloom.backends.cuda.triton.programs import KernelText, TritonProgram
from tuneloom.backends.meaning import TensorType
from tuneloom.model.trial import Failure, FailureKind

_ALIGNED = [["tt.divisibility", 16]]
_LAST_LINES = 3
_PARAMETER = re.compile(r"\.param ")


def function_of(kernel: KernelText) -> Any:
    """The kernel as a Triton function, interpreted instead of compiled where TRITON_INTERPRET is set.

    Triton reads the text of its functions again, so it is left where `inspect` looks.
    """
    path = f"<{kernel.name}>"
    linecache.cache[path] = (len(kernel.source), None, kernel.source.splitlines(keepends=True), path)
    names: dict[str, Any] = {"__name__": kernel.name}
    exec(compile(kernel.source, path, "exec"), names)
    return names[kernel.name]


def compiled(program: TritonProgram, gpu: Gpu) -> DeviceCode | Failure:
    """Machine code for every kernel of a program, or why there is none."""
    scratch = list(program.scratch)
    try:
        launches = tuple(_launch(each, gpu, scratch) for each in program.kernels)
    except Exception as error:
        lines = str(error).strip().splitlines()[-_LAST_LINES:]
        return Failure(kind=FailureKind.BUILD_ERROR, message=" ".join([type(error).__name__, *lines]))
    for each in launches:
        if each.shared_bytes > gpu.shared_bytes:
            message = f"needs {each.shared_bytes} bytes of shared memory of {gpu.shared_bytes}"
            return Failure(kind=FailureKind.BUILD_ERROR, message=message)
    return DeviceCode(launches=launches, scratch=tuple(scratch))


def _launch(kernel: KernelText, gpu: Gpu, scratch: list[TensorType]) -> Launch:
    from triton import compile as compile_source
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    source = ASTSource(
        fn=function_of(kernel),
        signature={each.name: f"*{POINTERS[each.dtype]}" for each in kernel.arguments},
        constexprs={},
        attrs={(number,): _ALIGNED for number in range(len(kernel.arguments))},
    )
    options = {"num_warps": kernel.warps, "num_stages": kernel.stages, "enable_fp_fusion": True}
    built = compile_source(source, target=GPUTarget("cuda", gpu.arch, 32), options=options)
    facts = built.metadata
    return Launch(
        symbol=facts.name,
        cubin=built.asm["cubin"],
        grid=kernel.grid,
        threads=facts.num_warps * 32,
        shared_bytes=facts.shared,
        arguments=(*kernel.arguments, *_added(kernel, built, scratch)),
    )


def _added(kernel: KernelText, built: Any, scratch: list[TensorType]) -> Iterator[Argument]:
    """The pointers that Triton adds to a kernel's parameters; the first is to scratch memory, if needed."""
    count = len(_PARAMETER.findall(built.asm["ptx"].split(".entry")[1].split(")")[0]))
    needed = built.metadata.global_scratch_size * prod(kernel.grid)
    for number in range(count - len(kernel.arguments)):
        if number == 0 and needed:
            yield Argument("scratch", len(scratch), "uint8")
            scratch.append(TensorType(shape=(needed,), dtype="uint8"))
        else:
            yield Argument("null")
