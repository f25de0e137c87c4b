"""A model in single precision as one in half precision, as if it had been exported so.

Products read halves and sum in single precision; what follows them is rounded once. Sums over many
elements, powers, exponentials and everything computed from them stay in single precision until the next
product. Inputs and outputs keep their types.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tuneloom.backends.cuda.passes.halves import PRODUCTS, in_half
from tuneloom.compiler.number_types import numpy_type
from tuneloom.compiler.renewing import with_main
from tuneloom.compiler.rewriting import array_of, dtype_of, name_of

_FOLLOWING = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "maximum", "minimum", "negative", "abs", "clip", "where"),
        *("sigmoid", "tanh", "erf", "nn.relu", "nn.relu6", "nn.gelu", "nn.gelu_tanh", "nn.silu", "nn.prelu"),
        *("nn.leakyrelu", "reshape", "flatten", "squeeze", "expand_dims", "permute_dims", "broadcast_to"),
        *(
            "concat",
            "split",
            "stack",
            "strided_slice",
            "take",
            "repeat",
            "tile",
            "flip",
            "nn.pad",
            "full_like",
        ),
        *("nn.max_pool1d", "nn.max_pool2d", "nn.avg_pool1d", "nn.avg_pool2d", "image.resize2d", "zeros_like"),
        *("nn.softmax", "nn.layer_norm", "nn.rms_norm", "nn.group_norm", "nn.instance_norm", "nn.dropout"),
        *("nn.attention", "nn.attention_bias", "nn.pixel_shuffle", "gather_elements", "ones_like"),
    )
)
"""Operators that lose nothing which their operands had; their kernels compute in single precision."""


def halved(module: Any, dtype: str) -> Any:
    """The module with everything between inputs and outputs in half precision where that is safe."""
    from tvm import relax

    main = module["main"]

    def write(builder: Any) -> Any:
        writing = _Halving(builder, dtype)
        for block in main.body.blocks:
            for binding in block.bindings:
                writing.bind(binding)
        return writing.as_before(main.body.body)

    return relax.transform.DeadCodeElimination()(with_main(module, write))


class _Halving:
    """Writes a program again, binding by binding."""

    def __init__(self, builder: Any, dtype: str) -> None:
        self._builder, self._dtype = builder, dtype
        self._values: dict[Any, Any] = {}
        self._constants: list[tuple[Any, Any]] = []

    def bind(self, binding: Any) -> None:
        """Write what a variable is bound to."""
        from tvm import relax

        value = binding.value
        if isinstance(value, relax.Call):
            self._values[binding.var] = self._builder.emit(self._call(value))
        elif isinstance(value, relax.Tuple):
            self._values[binding.var] = relax.Tuple([self.of(one) for one in value.fields])
        elif isinstance(value, relax.TupleGetItem):
            whole = self.of(value.tuple_value)
            fields = whole.fields if isinstance(whole, relax.Tuple) else None
            self._values[binding.var] = (
                self._builder.emit(relax.TupleGetItem(whole, value.index))
                if fields is None
                else fields[value.index]
            )
        else:
            self._values[binding.var] = self.of(value)

    def of(self, value: Any) -> Any:
        """A value of the old program in the new one, whatever its type is there."""
        from tvm import relax

        if isinstance(value, relax.Tuple):
            return relax.Tuple([self.of(one) for one in value.fields])
        return self._values.get(value, value) if isinstance(value, relax.Var) else value

    def as_before(self, value: Any) -> Any:
        """A value, or the fields of a tuple, in the types that the old program had."""
        from tvm import relax

        if isinstance(value, relax.Tuple):
            return relax.Tuple([self.as_before(one) for one in value.fields])
        kinds = getattr(getattr(value, "ty", None), "fields", None)
        new = self.of(value)
        if kinds is None:
            return self._as(new, dtype_of(value))
        fields = new.fields if isinstance(new, relax.Tuple) else [
            self._builder.emit(relax.TupleGetItem(new, n)) for n in range(len(kinds))
        ]  # fmt: skip
        return relax.Tuple([self._as(one, str(kind.dtype)) for one, kind in zip(fields, kinds, strict=True)])

    def _call(self, call: Any) -> Any:
        from tvm import relax

        name = name_of(call)
        if name in PRODUCTS:
            operands = [self._as(self.of(one), self._dtype) for one in call.args]
            return relax.op.astype(self._builder.emit(in_half(call, operands)), self._dtype)
        follows = name in _FOLLOWING and self._is_half(call.args)
        arguments = [self._narrow(self.of(one)) if follows else self.as_before(one) for one in call.args]
        return relax.Call(call.op, arguments, call.attrs, call.ty_args)

    def _is_half(self, arguments: Sequence[Any]) -> bool:
        """Whether all tensors among some operands are halves already, beside constants."""
        found = [one for argument in arguments for one in _tensors(self.of(argument))]
        computed = [dtype_of(one) for one in found if array_of(one) is None]
        return bool(found) and all(one in (self._dtype, "bool") or "int" in one for one in computed)

    def _narrow(self, value: Any) -> Any:
        from tvm import relax

        if isinstance(value, relax.Tuple):
            return relax.Tuple([self._narrow(one) for one in value.fields])
        return self._as(value, self._dtype) if dtype_of(value) == "float32" else value

    def _as(self, value: Any, dtype: str) -> Any:
        """A tensor of floating point in another type; anything else as it is."""
        from tvm import relax

        if dtype_of(value) == dtype or not {dtype_of(value), dtype} <= {"float32", self._dtype}:
            return value
        if array_of(value) is None:
            return self._builder.emit(relax.op.astype(value, dtype))
        known = next((new for old, new in self._constants if old.same_as(value)), None)
        if known is None:
            known = relax.const(_rounded(array_of(value), dtype), dtype)
            self._constants.append((value, known))
        return known


def _tensors(value: Any) -> list[Any]:
    fields = getattr(value, "fields", None)
    if fields is not None:
        return [inner for one in fields for inner in _tensors(one)]
    return [value] if dtype_of(value) else []


def _rounded(array: Any, dtype: str) -> Any:
    """An array in half precision; finite numbers beyond its range are the largest that it has."""
    kind, most = numpy_type(dtype), {"float16": 65504.0}.get(dtype, 3.38e38)
    return np.where(np.isfinite(array), np.clip(array, -most, most), array).astype(kind)
