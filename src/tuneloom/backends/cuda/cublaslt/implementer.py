"""cuBLASLt as an implementer: a C function for each product, which loads the library when it first runs."""

import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

from tuneloom.backends.cuda.cublaslt.claims import WORKSPACE_BYTES, CublasClaim, cublas_claim
from tuneloom.backends.cuda.triton.claims import Configuration
from tuneloom.backends.implementers import Implementer, Insert, ModelKernel, Requirement
from tuneloom.backends.wrapping import placeholders
from tuneloom.model.trial import Failure, FailureKind

NEEDED = Requirement(
    libraries={"libcublasLt.so.13": "nvidia-cublas", "libcublasLt.so.12": "nvidia-cublas-cu12"}
)
"""The versions that the code looks for (`product.c`), in this order."""
_FAILED = "a product that cuBLASLt can compute on this machine"


class CublasImplementer(Implementer):
    """Products by NVIDIA's library, with its epilogues; building needs a C compiler but nothing of CUDA."""

    name: ClassVar[str] = "cublaslt"
    requirements: ClassVar[tuple[Requirement, ...]] = (NEEDED,)

    def claim(self, kernel: ModelKernel) -> CublasClaim | None:
        """A claim if the library can compute the kernel; nothing is compiled or loaded."""
        able = kernel.meaning is not None and shutil.which("cc") is not None
        return cublas_claim(kernel.meaning, kernel.target.config) if able and kernel.meaning else None

    def build(self, claim: CublasClaim, configuration: Configuration, symbol: str) -> bytes | Failure:
        """The C function of a configuration as an object file."""
        refusal = claim.refusal(configuration)
        if refusal:
            return Failure(kind=FailureKind.BUILD_ERROR, message=refusal)
        flags = [f"-D{name}={value}" for name, value in claim.macros(configuration, symbol).items()]
        with tempfile.TemporaryDirectory(prefix="tuneloom-") as folder:
            built = Path(folder) / "product.o"
            source = resources.files(__package__) / "product.c"
            with resources.as_file(source) as path:
                command = ["cc", "-O2", "-fPIC", *flags, "-c", "-o", str(built), str(path)]
                return _compiled(command, built)

    def insert(self, claim: CublasClaim, configuration: Configuration, symbol: str) -> Insert | Failure:
        """A PrimFunc in the place of the kernel, and the module with the function that it calls."""
        from tvm.runtime import load_static_library

        code = self.build(claim, configuration, symbol)
        if isinstance(code, Failure):
            return code
        with tempfile.NamedTemporaryFile(suffix=".o") as file:
            Path(file.name).write_bytes(code)
            module = load_static_library(file.name, [symbol])
        return Insert(function=_calling(claim, symbol), modules=(module,))


def _compiled(command: list[str], built: Path) -> bytes | Failure:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return Failure(kind=FailureKind.BUILD_ERROR, message=f"no C compiler: {error}")
    if done.returncode:
        return Failure(kind=FailureKind.BUILD_ERROR, message=done.stderr[-500:])
    return built.read_bytes()


def _calling(claim: CublasClaim, symbol: str) -> Any:
    """A PrimFunc with the kernel's parameters that calls the C function, and fails where that does.

    It fails by calling a function that nobody has: assertions are left out of what is measured.
    """
    from tvm import te, tirx

    inputs, result = placeholders(claim.inputs), claim.result

    def call(ins: Any, outs: Any) -> Any:
        null = tirx.reinterpret("handle", tirx.const(0, "uint64"))
        pointers = [ins[claim.first.value].access_ptr("r"), ins[claim.second.value].access_ptr("r")]
        pointers += [
            null if each is None else ins[each].access_ptr("r")
            for each in (claim.epilogue.bias, claim.epilogue.residual)
        ]
        status = tirx.call_extern(
            "int32", symbol, *pointers, outs[1].access_ptr("rw"), outs[0].access_ptr("w")
        )
        failing = tirx.Evaluate(tirx.call_packed(_FAILED))
        return tirx.IfThenElse(tirx.NE(status, tirx.const(0, "int32")), failing, None)

    shapes, dtypes = [result.shape, (WORKSPACE_BYTES,)], [result.dtype, "uint8"]
    output, _workspace = te.extern(shapes, inputs, call, name="cublaslt", dtype=dtypes)
    return te.create_prim_func([*inputs, output]).with_attr("tirx.is_scheduled", True)
