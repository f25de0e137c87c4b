"""cuBLASLt as an implementer: a C function for each product."""

from typing import ClassVar

from tuneloom.backends.cuda.cublaslt.claims import CublasClaim, cublas_claim
from tuneloom.backends.cuda.library_calls import LibraryImplementer
from tuneloom.backends.implementers import ModelKernel, Requirement

NEEDED = Requirement(
    libraries={"libcublasLt.so.13": "nvidia-cublas", "libcublasLt.so.12": "nvidia-cublas-cu12"},
    version="cublasLtGetVersion",
)
"""The versions that the code looks for (`product.c`), in this order."""


class CublasImplementer(LibraryImplementer):
    """Products by NVIDIA's library, with its epilogues."""

    name: ClassVar[str] = "cublaslt"
    requirements: ClassVar[tuple[Requirement, ...]] = (NEEDED,)
    source: ClassVar[str] = "tuneloom.backends.cuda.cublaslt:product.c"

    def claim(self, kernel: ModelKernel) -> CublasClaim | None:
        """A claim if the library can compute the kernel; nothing is compiled or loaded."""
        known = kernel.meaning is not None and self.can_build()
        return cublas_claim(kernel.meaning, kernel.target.config) if known and kernel.meaning else None
