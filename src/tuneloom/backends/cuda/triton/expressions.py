"""Elementwise operators as Triton expressions; floating point is computed in float32."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tuneloom.backends.meaning import MeaningStep, TensorType

POINTERS: Mapping[str, str] = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "int8": "i8",
    "uint8": "u8",
    "int32": "i32",
    "int64": "i64",
    "bool": "i1",
}
"""Number types of tensors, as Triton's signatures name them."""

TYPES: Mapping[str, str] = {
    **{name: f"tl.{name}" for name in ("float16", "bfloat16", "float32", "int8", "uint8", "int32", "int64")},
    "float8_e4m3fn": "tl.float8e4nv",
    "float8_e5m2": "tl.float8e5",
    "bool": "tl.int1",
}
"""Number types as Triton's language names them."""

BYTES: Mapping[str, int] = {
    "float32": 4,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "bfloat16": 2,
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "int8", "uint8", "bool"), 1),
}

_ANY = {
    "relax.add": "({0} + {1})",
    "relax.subtract": "({0} - {1})",
    "relax.multiply": "({0} * {1})",
    "relax.maximum": "tl.maximum({0}, {1})",
    "relax.minimum": "tl.minimum({0}, {1})",
    "relax.negative": "(-{0})",
    "relax.abs": "tl.abs({0})",
    "relax.square": "({0} * {0})",
    "relax.where": "tl.where({0}, {1}, {2})",
    "relax.equal": "({0} == {1})",
    "relax.not_equal": "({0} != {1})",
    "relax.less": "({0} < {1})",
    "relax.less_equal": "({0} <= {1})",
    "relax.greater": "({0} > {1})",
    "relax.greater_equal": "({0} >= {1})",
}
_FLOAT = {
    "relax.divide": "({0} / {1})",
    "relax.nn.relu": "tl.maximum({0}, 0.0)",
    "relax.nn.relu6": "tl.minimum(tl.maximum({0}, 0.0), 6.0)",
    "relax.nn.gelu_tanh": "({0} * tl.sigmoid(1.5957691216057308 * ({0} + 0.044715 * {0} * {0} * {0})))",
    "relax.nn.silu": "({0} * tl.sigmoid({0}))",
    "relax.sigmoid": "tl.sigmoid({0})",
    "relax.tanh": "(1.0 - 2.0 / (tl.exp(2.0 * {0}) + 1.0))",
    "relax.erf": "tl.erf({0})",
    "relax.exp": "tl.exp({0})",
    "relax.log": "tl.log({0})",
    "relax.sqrt": "tl.sqrt({0})",
    "relax.rsqrt": "tl.rsqrt({0})",
    "relax.sin": "tl.sin({0})",
    "relax.cos": "tl.cos({0})",
    "relax.floor": "tl.floor({0})",
    "relax.ceil": "tl.ceil({0})",
    "relax.isnan": "({0} != {0})",
}
_BOOL = {
    "relax.bitwise_and": "({0} & {1})",
    "relax.bitwise_or": "({0} | {1})",
    "relax.logical_and": "({0} & {1})",
    "relax.logical_or": "({0} | {1})",
    "relax.logical_not": "({0} == 0)",
}
_POWERS = {
    2.0: "({0} * {0})",
    3.0: "({0} * {0} * {0})",
    0.5: "tl.sqrt({0})",
    -0.5: "tl.rsqrt({0})",
    1.0: "{0}",
}


def is_float(dtype: str) -> bool:
    """Whether numbers of a type are computed in float32."""
    return dtype.startswith(("float", "bfloat"))


def expression(
    step: MeaningStep, types: Sequence[TensorType], values: Sequence[str], exponent: Any
) -> str | None:
    """The value of an elementwise step; None if it is none of those known here.

    `exponent` is the second operand's value where that is a constant.
    """
    floats = all(is_float(each.dtype) for each in types)
    special = _SPECIAL.get(step.operator)
    if special is not None:
        return special(step, types, values)
    if step.operator == "relax.power":
        form = _POWERS.get(exponent) if floats else None
    elif step.operator in _BOOL:
        form = _BOOL[step.operator] if all(each.dtype == "bool" for each in types) else None
    else:
        form = _ANY.get(step.operator) or (_FLOAT.get(step.operator) if floats else None)
    return None if form is None else form.format(*values)


def cast(value: str, source: str, to: str) -> str:
    """A value that is computed for type `source`, as one that is computed for type `to`."""
    if is_float(to):
        value = value if is_float(source) else f"{value}.to(tl.float32)"
        return value if to == "float32" else f"{value}.to({TYPES[to]}).to(tl.float32)"
    return f"({value} != 0)" if to == "bool" else f"{value}.to({TYPES[to]})"


def _astype(step: MeaningStep, types: Sequence[TensorType], values: Sequence[str]) -> str | None:
    return cast(values[0], types[0].dtype, step.result.dtype) if step.result.dtype in TYPES else None


def _clip(step: MeaningStep, types: Sequence[TensorType], values: Sequence[str]) -> str | None:
    low, high = step.attributes["min"], step.attributes["max"]
    if is_float(types[0].dtype):
        low, high = float(low), float(high)
    return f"tl.minimum(tl.maximum({values[0]}, {low}), {high})"


def _leaky_relu(step: MeaningStep, types: Sequence[TensorType], values: Sequence[str]) -> str | None:
    value, slope = values[0], float(step.attributes["alpha"])
    return f"tl.where({value} > 0, {value}, {value} * {slope})"


def _gelu(step: MeaningStep, types: Sequence[TensorType], values: Sequence[str]) -> str | None:
    """By the error function, or for half precision by a sigmoid that half precision can't tell from it.

    It needs no error function, for which the hardware has no instruction.
    """
    value = values[0]
    if step.result.dtype not in ("float16", "bfloat16"):
        return f"(0.5 * {value} * (1.0 + tl.erf({value} * 0.7071067811865476)))"
    square = f"tl.minimum({value} * {value}, 25.0)"
    slope = f"1.5945913 + {square} * (0.0744380264 - 7.70524356e-4 * {square})"
    return f"({value} * tl.sigmoid({value} * ({slope})))"


def _softplus(step: MeaningStep, types: Sequence[TensorType], values: Sequence[str]) -> str | None:
    beta, threshold = (float(step.attributes[name]) for name in ("beta", "threshold"))
    value = values[0]
    soft = f"tl.log(1.0 + tl.exp(tl.minimum({value} * {beta}, {threshold}))) / {beta}"
    return f"tl.where({value} * {beta} > {threshold}, {value}, {soft})"


_SPECIAL: Mapping[str, Callable[[MeaningStep, Sequence[TensorType], Sequence[str]], str | None]] = {
    "relax.astype": _astype,
    "relax.clip": _clip,
    "relax.nn.leakyrelu": _leaky_relu,
    "relax.nn.softplus": _softplus,
    "relax.nn.gelu": _gelu,
}
