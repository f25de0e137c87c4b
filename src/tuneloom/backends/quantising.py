"""Data of products in 8 bits: which variables they read, how far these reach, where they are rounded."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.compiler.renewing import bindings_of, with_outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How floats become numbers of 8 bits: divided by `step`, rounded, moved by `zero`."""

    step: float
    zero: int
    dtype: str

    @property
    def limits(self) -> tuple[int, int]:
        """The least and greatest number of a type of whole numbers."""
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)


class Quantiser(ABC):
    """How a backend computes with 8-bit numbers: which products, and by which steps data are rounded."""

    @abstractmethod
    def is_point(self, expression: Any) -> bool:
        """Whether a call is a product with constant weights that 8-bit numbers may compute."""

    @abstractmethod
    def scale(self, low: float, high: float) -> Scale:
        """Steps that reach from the least to the greatest value."""

    def weights(self, product: Any) -> Any:
        """The weights of a product as it reads them; as they are where the backend rounds them later."""
        return product.args[1]

    def sources(self, module: Any) -> list[Any]:
        """The variables of `main` that such products read, each once; none where it has several blocks."""
        found = [one.value.args[0] for one in bindings_of(module) if self.is_point(one.value)]
        return list(dict.fromkeys(found))

    def watched(self, module: Any, sources: Sequence[Any]) -> Any:
        """The module whose `main` also gives the least and greatest value of these variables."""
        makers = (relax.op.min, relax.op.max)
        return with_outputs(
            module, lambda builder: [builder.emit(of(one)) for one in sources for of in makers]
        )

    def rounded(self, module: Any, scales: Mapping[Any, Scale]) -> Any:
        """The module with these variables rounded where products read them."""
        from tvm.relax.expr_functor import PyExprMutator, mutator

        quantiser = self

        @mutator
        class Rounding(PyExprMutator):  # type: ignore[misc]
            """Puts a pair of conversions before each point; a variable has one pair for all that read it."""

            def __init__(self, module: Any) -> None:
                super().__init__(module)
                self.pairs: dict[Any, Any] = {}

            def visit_call_(self, call: Any) -> Any:
                source = call.args[0] if quantiser.is_point(call) else None
                visited = super().visit_call_(call)
                if source is None or source not in scales:
                    return visited
                if source not in self.pairs:
                    self.pairs[source] = self._pair(visited.args[0], scales[source])
                operands = [self.pairs[source], quantiser.weights(visited)]
                return relax.Call(visited.op, operands, visited.attrs)

            def _pair(self, data: Any, scale: Scale) -> Any:
                step = relax.const(np.float32(scale.step))
                zero = relax.const(
                    np.array(scale.zero, dtype=scale.dtype if "int" in scale.dtype else "float16")
                )
                whole = self.builder_.emit(relax.op.quantize(data, step, zero, -1, scale.dtype))
                return self.builder_.emit(relax.op.dequantize(whole, step, zero, -1, "float32"))

        mutated = Rounding(module)
        for gvar, function in module.functions.items():
            if gvar.name_hint == "main":
                mutated.builder_.update_func(gvar, mutated.visit_expr(function))
        return mutated.builder_.get()
