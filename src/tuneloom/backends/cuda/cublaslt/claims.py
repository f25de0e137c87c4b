"""Products that cuBLASLt takes: plain matrices, with bias, residual and one activation behind."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tuneloom.backends.cuda.epilogues import Epilogue, Summed, epilogue_of
from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.library_calls import WORKSPACE_BYTES, algorithm_refusal, algorithm_space
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices
from tuneloom.backends.cuda.triton.expressions import BYTES
from tuneloom.backends.cuda.triton.templates.products import Matrix, Product, matrices, product_of
from tuneloom.backends.meaning import Meaning, MeaningStep, TensorType

ALGORITHMS = 16
_GUESSES = 4
_TYPES = {"float32": 0, "float16": 2, "bfloat16": 14}
_FULL, _TF32 = 68, 77
_PLAIN, _RELU, _BIAS, _GELU = 1, 2, 4, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class CublasClaim:
    """A product for cuBLASLt, which takes a bias in the type of the result, whatever the kernel has."""

    meaning: Meaning = field(repr=False)
    product: Product = field(repr=False)
    first: Matrix
    second: Matrix
    epilogue: Epilogue

    @property
    def factors(self) -> tuple[int, int]:
        """The inputs that are multiplied."""
        return self.first.value, self.second.value

    @property
    def result(self) -> TensorType:
        """What the kernel gives."""
        return self.meaning.type_of(self.meaning.outputs[0])

    @property
    def inputs(self) -> tuple[TensorType, ...]:
        """What the function takes: the kernel's inputs, the bias in the type of the result."""
        return tuple(
            replace(each, dtype=self.result.dtype) if number == self.epilogue.bias else each
            for number, each in enumerate(self.meaning.inputs)
        )

    @property
    def space(self) -> KnobChoices:
        """The library's list of algorithms, which it orders by its own expectations."""
        return algorithm_space(ALGORITHMS, _GUESSES)

    def refusal(self, configuration: Configuration) -> str:
        """Why a configuration is not worth building; empty if it may work."""
        return algorithm_refusal(configuration, ALGORITHMS)

    def macros(self, configuration: Configuration, symbol: str) -> dict[str, Any]:
        """What the C function is compiled with."""
        product, size = self.product, BYTES[self.product.dtype]
        compute = _TF32 if product.step.attributes.get("precision") == "tf32" else _FULL
        bias = _BIAS if self.epilogue.bias is not None else 0
        numbers = {
            "SYMBOL": symbol, "TYPE": _TYPES[product.dtype],
            "RESULT_TYPE": _TYPES[self.result.dtype], "COMPUTE": compute, "BATCH": product.batch,
            "ROWS": product.rows, "COLUMNS": product.columns, "DEPTH": product.depth,
            "EPILOGUE": (self.epilogue.activation | bias) or _PLAIN, "WORKSPACE": WORKSPACE_BYTES,
            "ALGORITHM": configuration["algorithm"],
        }  # fmt: skip
        for name, matrix, turned in (
            ("X", self.first, self.first.turned),
            ("W", self.second, not self.second.turned),
        ):
            numbers |= {
                f"{name}_TURNED": int(turned), f"{name}_LEADING": matrix.stride,
                f"{name}_STRIDE": matrix.batch_stride, f"{name}_SHIFT": matrix.shift * size,
            }  # fmt: skip
        return numbers


def cublas_claim(meaning: Meaning, target: Mapping[str, Any]) -> CublasClaim | None:
    """A claim on a product of plain matrices with nothing behind it that the library can't do."""
    gpu = Gpu.of(target)
    found = None if gpu is None else product_of(meaning, gpu)
    if found is None or found.dtype not in _TYPES or len(meaning.outputs) != 1:
        return None
    factors = matrices(found)
    epilogue = epilogue_of(
        Summed(
            meaning=meaning,
            value=found.value,
            dtype=found.dtype,
            channels=found.columns,
            takes_bias=found.rows > 1,
            activations=_activation,
        )
    )
    if factors is None or epilogue is None or (epilogue.bias is not None and found.batch > 1):
        return None
    return CublasClaim(meaning=meaning, product=found, first=factors[0], second=factors[1], epilogue=epilogue)


def _activation(step: MeaningStep, result: str) -> int:
    """The library's GELU is the one with tanh, which half precision can't tell from the exact one."""
    exact = step.operator == "relax.nn.gelu" and result != "float32"
    return {"relax.nn.relu": _RELU, "relax.nn.gelu_tanh": _GELU}.get(step.operator, _GELU if exact else 0)
