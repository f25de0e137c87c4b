"""cuDNN as an implementer: a C function for each convolution."""

from typing import ClassVar

from tuneloom.backends.cuda.cudnn.claims import CudnnClaim, cudnn_claim
from tuneloom.backends.cuda.library_calls import LibraryImplementer
from tuneloom.backends.implementers import ModelKernel, Requirement

NEEDED = Requirement(libraries={"libcudnn.so.9": "nvidia-cudnn-cu13"}, version="cudnnGetVersion")
"""The version that the code looks for (`convolution.c`)."""


class CudnnImplementer(LibraryImplementer):
    """Convolutions by NVIDIA's library, with bias, residual and ReLU."""

    name: ClassVar[str] = "cudnn"
    requirements: ClassVar[tuple[Requirement, ...]] = (NEEDED,)
    source: ClassVar[str] = "tuneloom.backends.cuda.cudnn:convolution.c"

    def claim(self, kernel: ModelKernel) -> CudnnClaim | None:
        """A claim if the library can compute the kernel; nothing is compiled or loaded."""
        known = kernel.meaning is not None and self.can_build()
        return cudnn_claim(kernel.meaning, kernel.target.config) if known and kernel.meaning else None
