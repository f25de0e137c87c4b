"""Triton as an implementer: which kernels it takes, and how a configuration becomes machine code."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, ClassVar

from tuneloom.backends.cuda.code import DeviceCode
from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, Template, TritonClaim, Unfit
from tuneloom.backends.cuda.triton.templates.attention.template import ATTENTION
from tuneloom.backends.cuda.triton.templates.convolutions import CONVOLUTIONS
from tuneloom.backends.cuda.triton.templates.elements import ELEMENTS
from tuneloom.backends.cuda.triton.templates.products import PRODUCTS
from tuneloom.backends.cuda.triton.templates.recurrent import RECURRENT
from tuneloom.backends.cuda.triton.templates.rows import ROWS
from tuneloom.backends.cuda.triton.templates.sums import SUMS
from tuneloom.backends.cuda.triton.templates.transposed import TRANSPOSED
from tuneloom.backends.cuda.triton.templates.vectors import VECTORS
from tuneloom.backends.cuda.triton.templates.windows import WINDOWS
from tuneloom.backends.implementers import Implementer, Insert, ModelKernel
from tuneloom.backends.meaning import Meaning
from tuneloom.model.trial import Failure, FailureKind

TEMPLATES: tuple[Template, ...] = (
    ATTENTION,
    VECTORS,
    PRODUCTS,
    WINDOWS,
    CONVOLUTIONS,
    TRANSPOSED,
    RECURRENT,
    SUMS,
    ROWS,
    ELEMENTS,
)
"""Every template, the more special first."""


class TritonImplementer(Implementer):
    """Kernels from templates, compiled by Triton for a named architecture without a GPU."""

    name: ClassVar[str] = "triton"
    remembers: ClassVar[bool] = True

    def claim(self, kernel: ModelKernel) -> TritonClaim | None:
        """A claim if Triton is installed and some template can write the kernel; nothing is compiled."""
        if kernel.meaning is None or find_spec("triton") is None:
            return None
        return triton_claim(kernel.meaning, kernel.target.config)

    def build(
        self, claim: TritonClaim, configuration: Configuration, symbol: str = ""
    ) -> DeviceCode | Failure:
        """Machine code of a configuration; what can't work is refused before anything is compiled.

        Kernels are named after `symbol`, or after a digest of their text.
        """
        from tuneloom.backends.cuda.triton.compiling import compiled

        refusal = claim.refusal(configuration)
        if refusal:
            return Failure(kind=FailureKind.BUILD_ERROR, message=refusal)
        program = claim.program(configuration)
        return compiled(program.named(symbol) if symbol else program, claim.gpu)

    def insert(self, claim: TritonClaim, configuration: Configuration, symbol: str) -> Insert | Failure:
        """A PrimFunc that launches the kernels of a configuration, and the modules that hold them."""
        from tuneloom.backends.cuda.inserting import device_modules, launching

        code = self.build(claim, configuration, symbol)
        if isinstance(code, Failure):
            return code
        return Insert(function=launching(claim.meaning, code), modules=device_modules(code))


def triton_claim(meaning: Meaning, target: Mapping[str, Any]) -> TritonClaim | None:
    """The claim of the first template that can write a kernel; Triton is not imported."""
    gpu = Gpu.of(target)
    claims = () if gpu is None else (_claim(each, meaning, gpu) for each in TEMPLATES)
    return next(filter(None, claims), None)


def _claim(template: Template, meaning: Meaning, gpu: Gpu) -> TritonClaim | None:
    try:
        space = template.space(meaning, gpu)
        if space is None or not space.guesses:
            return None
        template.program(meaning, gpu, space.guesses[0])
    except Unfit:
        return None
    return TritonClaim(template=template, meaning=meaning, gpu=gpu, space=space)
