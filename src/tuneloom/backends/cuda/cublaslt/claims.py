"""Products that cuBLASLt takes: plain matrices, with bias, residual and one activation behind."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices
from tuneloom.backends.cuda.triton.expressions import BYTES
from tuneloom.backends.cuda.triton.templates.products import Matrix, Product, matrices, product_of
from tuneloom.backends.meaning import Meaning, MeaningStep, TensorType

ALGORITHMS = 16
WORKSPACE_BYTES = 32 << 20
_TYPES = {"float32": 0, "float16": 2, "bfloat16": 14}
_FULL, _TF32 = 68, 77
_PLAIN, _RELU, _BIAS, _GELU = 1, 2, 4, 32
_PASSED = frozenset(("relax.reshape", "relax.expand_dims", "relax.squeeze", "relax.astype"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Epilogue:
    """What the library does with a product; `bias` and `residual` are the numbers of inputs."""

    bias: int | None = None
    residual: int | None = None
    activation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CublasClaim:
    """A product for cuBLASLt, which takes a bias in the type of the result, whatever the kernel has."""

    meaning: Meaning = field(repr=False)
    product: Product = field(repr=False)
    first: Matrix
    second: Matrix
    epilogue: Epilogue

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
    factors, epilogue = matrices(found), _behind(found)
    if factors is None or epilogue is None or (epilogue.bias is not None and found.batch > 1):
        return None
    return CublasClaim(meaning=meaning, product=found, first=factors[0], second=factors[1], epilogue=epilogue)


def _behind(found: Product) -> Epilogue | None:
    """What follows a product; None if the library can't do it, which rounds once, at the end."""
    meaning, value, epilogue = found.meaning, found.value, Epilogue()
    for number, step in enumerate(meaning.steps[value - len(meaning.inputs) + 1 :], value + 1):
        if value not in step.operands and _input(meaning, number) is not None:
            continue
        if step.result.dtype not in (found.dtype, "float32"):
            return None
        if not _passes(step, value):
            grown = _with(epilogue, found, step, value)
            if grown is None:
                return None
            epilogue = grown
        value = number
    return epilogue if meaning.outputs == (value,) else None


def _with(epilogue: Epilogue, found: Product, step: MeaningStep, value: int) -> Epilogue | None:
    """An epilogue with one more step behind it."""
    meaning = found.meaning
    result = meaning.type_of(meaning.outputs[0]).dtype
    added = _added(meaning, step, value)
    if epilogue.activation:
        return None
    if added is None:
        activation = _activation(step, result) if step.operands == (value,) else 0
        return replace(epilogue, activation=activation) if activation else None
    if epilogue.bias is None and _is_bias(meaning, added, found):
        return replace(epilogue, bias=added)
    tensor = meaning.inputs[added]
    fits = (tensor.shape, tensor.dtype) == (meaning.type_of(value).shape, result)
    return replace(epilogue, residual=added) if fits and epilogue.residual is None else None


def _passes(step: MeaningStep, value: int) -> bool:
    """Whether a step only shows a value in another shape or type."""
    return step.operator in _PASSED and step.operands == (value,)


def _added(meaning: Meaning, step: MeaningStep, value: int) -> int | None:
    """The input that a step adds to a value."""
    if step.operator != "relax.add" or value not in step.operands:
        return None
    return _input(meaning, step.operands[1] if step.operands[0] == value else step.operands[0])


def _input(meaning: Meaning, value: int) -> int | None:
    """The input that a value is, perhaps in another type."""
    while (step := meaning.step_of(value)) is not None and step.operator == "relax.astype":
        (value,) = step.operands
    return value if step is None else None


def _is_bias(meaning: Meaning, added: int, found: Product) -> bool:
    shape, dtype = meaning.inputs[added].shape, meaning.inputs[added].dtype
    vector = shape[-1:] == (found.columns,) and prod(shape) == found.columns
    return vector and found.rows > 1 and dtype in (found.dtype, "float32")


def _activation(step: MeaningStep, result: str) -> int:
    """The library's GELU is the one with tanh, which half precision can't tell from the exact one."""
    exact = step.operator == "relax.nn.gelu" and result != "float32"
    return {"relax.nn.relu": _RELU, "relax.nn.gelu_tanh": _GELU}.get(step.operator, _GELU if exact else 0)
