"""Products that cuBLASLt takes: plain matrices, with bias, residual and one activation behind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices
from tuneloom.backends.cuda.triton.expressions import BYTES
from tuneloom.backends.cuda.triton.templates.products import Matrix, Product, matrices, product_of
from tuneloom.backends.meaning import Meaning, MeaningStep

ALGORITHMS = 16
WORKSPACE_BYTES = 32 << 20
_TYPES = {"float32": 0, "float16": 2, "bfloat16": 14}
_FULL, _TF32 = 68, 77
_PLAIN, _RELU, _BIAS, _GELU = 1, 2, 4, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class CublasClaim:
    """A product for cuBLASLt; `bias` and `residual` are the numbers of inputs."""

    meaning: Meaning = field(repr=False)
    product: Product = field(repr=False)
    first: Matrix
    second: Matrix
    bias: int | None
    residual: int | None
    activation: int

    @property
    def space(self) -> KnobChoices:
        """The library's list of algorithms, which it orders by its own expectations."""
        guesses = tuple({"algorithm": number} for number in range(4))
        return KnobChoices(knobs={"algorithm": tuple(range(ALGORITHMS))}, guesses=guesses)

    def refusal(self, configuration: Configuration) -> str:
        """Why a configuration is not worth building; empty if it may work."""
        number = configuration.get("algorithm", -1)
        return (
            ""
            if 0 <= number < ALGORITHMS and len(configuration) == 1
            else f"no algorithm {dict(configuration)}"
        )

    def macros(self, configuration: Configuration, symbol: str) -> dict[str, Any]:
        """What the C function is compiled with."""
        product, size = self.product, BYTES[self.product.dtype]
        compute = _TF32 if product.step.attributes.get("precision") == "tf32" else _FULL
        bias = _BIAS if self.bias is not None else 0
        numbers = {
            "SYMBOL": symbol, "TYPE": _TYPES[product.dtype], "COMPUTE": compute, "BATCH": product.batch,
            "ROWS": product.rows, "COLUMNS": product.columns, "DEPTH": product.depth,
            "EPILOGUE": (self.activation | bias) or _PLAIN, "WORKSPACE": WORKSPACE_BYTES,
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
    factors, behind = matrices(found), _behind(found)
    if factors is None or behind is None:
        return None
    bias, residual, activation = behind
    if bias is not None and found.batch > 1:
        return None
    return CublasClaim(
        meaning=meaning, product=found, first=factors[0], second=factors[1], bias=bias, residual=residual,
        activation=activation,
    )  # fmt: skip


def _behind(found: Product) -> tuple[int | None, int | None, int] | None:
    """Bias, residual and activation behind a product; None if there is something else."""
    meaning, value = found.meaning, found.value
    bias: int | None = None
    residual: int | None = None
    activation = 0
    for number, step in enumerate(meaning.steps[value - len(meaning.inputs) + 1 :], value + 1):
        if step.operator in ("relax.reshape", "relax.expand_dims", "relax.squeeze") and step.operands == (
            value,
        ):
            value = number
            continue
        added = _added(meaning, step, value)
        if activation or step.result.dtype != found.dtype:
            return None
        if added is not None and bias is None and _is_bias(meaning, added, found):
            bias = added
        elif (
            added is not None
            and residual is None
            and meaning.inputs[added].shape == meaning.type_of(value).shape
        ):
            residual = added
        elif step.operands == (value,) and _activation(step):
            activation = _activation(step)
        else:
            return None
        value = number
    return (bias, residual, activation) if meaning.outputs == (value,) else None


def _added(meaning: Meaning, step: MeaningStep, value: int) -> int | None:
    """The input that a step adds to a value."""
    if step.operator != "relax.add" or value not in step.operands:
        return None
    other = step.operands[1] if step.operands[0] == value else step.operands[0]
    return other if other < len(meaning.inputs) else None


def _is_bias(meaning: Meaning, added: int, found: Product) -> bool:
    shape = meaning.inputs[added].shape
    return shape[-1:] == (found.columns,) and prod(shape) == found.columns and found.rows > 1


def _activation(step: MeaningStep) -> int:
    """The library's GELU is the one with tanh, which half precision can't tell from the exact one."""
    exact = step.operator == "relax.nn.gelu" and step.result.dtype != "float32"
    return {"relax.nn.relu": _RELU, "relax.nn.gelu_tanh": _GELU}.get(step.operator, _GELU if exact else 0)
