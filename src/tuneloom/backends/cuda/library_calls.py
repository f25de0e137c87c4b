"""Kernels that call a library of NVIDIA's, by a C function that loads it when it first runs.

That is never inside the capture of a CUDA graph: TVM runs what it captures once before. Afterwards the
function allocates nothing; its workspace is the model's (`passes/scratch.py`).
"""

import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Protocol

from tuneloom.backends.cuda.epilogues import Epilogue
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices
from tuneloom.backends.implementers import Implementer, Insert
from tuneloom.backends.meaning import TensorType
from tuneloom.backends.wrapping import placeholders, pointer
from tuneloom.model.trial import Failure, FailureKind

WORKSPACE_BYTES = 32 << 20


class LibraryClaim(Protocol):
    """A kernel for a library, which takes a bias in the type of the result, whatever the kernel has."""

    @property
    def factors(self) -> tuple[int, int]:
        """The inputs that are multiplied."""

    @property
    def epilogue(self) -> Epilogue: ...

    @property
    def inputs(self) -> tuple[TensorType, ...]:
        """What the function takes: the kernel's inputs, the bias in the type of the result."""

    @property
    def result(self) -> TensorType:
        """What the kernel gives."""

    def refusal(self, configuration: Configuration) -> str: ...

    def macros(self, configuration: Configuration, symbol: str) -> dict[str, Any]:
        """What the C function is compiled with."""


class LibraryImplementer(Implementer):
    """Building needs a C compiler but nothing of CUDA: the C file has the few declarations that it needs."""

    source: ClassVar[str]
    """The package of the C file, and its name."""

    @staticmethod
    def can_build() -> bool:
        """Whether there is a C compiler."""
        return shutil.which("cc") is not None

    def build(self, claim: LibraryClaim, configuration: Configuration, symbol: str) -> bytes | Failure:
        """The C function of a configuration as an object file."""
        refusal = claim.refusal(configuration)
        if refusal:
            return Failure(kind=FailureKind.BUILD_ERROR, message=refusal)
        flags = [f"-D{name}={value}" for name, value in claim.macros(configuration, symbol).items()]
        package, _, name = self.source.partition(":")
        with (
            tempfile.TemporaryDirectory(prefix="tuneloom-") as folder,
            resources.as_file(resources.files(package) / name) as path,
        ):
            built = Path(folder) / "call.o"
            return _compiled(["cc", "-O2", "-fPIC", *flags, "-c", "-o", str(built), str(path)], built)

    def insert(self, claim: LibraryClaim, configuration: Configuration, symbol: str) -> Insert | Failure:
        """A PrimFunc in the place of the kernel, and the module with the function that it calls."""
        from tvm.runtime import load_static_library

        code = self.build(claim, configuration, symbol)
        if isinstance(code, Failure):
            return code
        with tempfile.NamedTemporaryFile(suffix=".o") as file:
            Path(file.name).write_bytes(code)
            module = load_static_library(file.name, [symbol])
        return Insert(function=_calling(claim, symbol, self.name), modules=(module,))


def algorithm_space(count: int, guesses: int) -> KnobChoices:
    """The first of a library's list of algorithms, which it orders by its own expectations."""
    first = tuple({"algorithm": number} for number in range(guesses))
    return KnobChoices(knobs={"algorithm": tuple(range(count))}, guesses=first)


def algorithm_refusal(configuration: Configuration, count: int) -> str:
    """Why there is no such algorithm; empty if there may be."""
    known = 0 <= configuration.get("algorithm", -1) < count and len(configuration) == 1
    return "" if known else f"no algorithm {dict(configuration)}"


def _compiled(command: list[str], built: Path) -> bytes | Failure:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return Failure(kind=FailureKind.BUILD_ERROR, message=f"no C compiler: {error}")
    if done.returncode:
        return Failure(kind=FailureKind.BUILD_ERROR, message=done.stderr[-500:])
    return built.read_bytes()


def _calling(claim: LibraryClaim, symbol: str, name: str) -> Any:
    """A PrimFunc with the kernel's parameters that calls the C function, and fails where that does.

    It fails by calling a function that nobody has: assertions are left out of what is measured.
    """
    from tvm import te, tirx

    inputs, result = placeholders(claim.inputs), claim.result
    pointed = (*claim.factors, claim.epilogue.bias, claim.epilogue.residual)

    def call(ins: Any, outs: Any) -> Any:
        null = tirx.reinterpret("handle", tirx.const(0, "uint64"))
        pointers = [null if each is None else pointer(ins[each], "r") for each in pointed]
        status = tirx.call_extern("int32", symbol, *pointers, pointer(outs[1], "rw"), pointer(outs[0], "w"))
        failing = tirx.Evaluate(tirx.call_packed(f"a kernel that {name} can compute on this machine"))
        return tirx.IfThenElse(tirx.NE(status, tirx.const(0, "int32")), failing, None)

    shapes, dtypes = [result.shape, (WORKSPACE_BYTES,)], [result.dtype, "uint8"]
    output, _workspace = te.extern(shapes, inputs, call, name=name, dtype=dtypes)
    return te.create_prim_func([*inputs, output]).with_attr("tirx.is_scheduled", True)
