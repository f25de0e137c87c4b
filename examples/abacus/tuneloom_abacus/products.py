"""Matrix products for the accelerator, with what may follow in the same kernel: a bias, ReLU."""

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tuneloom.backends.implementers import Claim, Configuration, Implementer, Insert, Knobs, ModelKernel
from tuneloom.backends.meaning import Meaning
from tuneloom.backends.wrapping import calling
from tuneloom.model import Failure, FailureKind

_FLOAT_BYTES = 4
_TILES = (4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductClaim:
    """A product of so many rows, columns and sums, whose tiles have to fit into the scratchpad."""

    meaning: Meaning
    sizes: tuple[int, int, int]
    scratchpad_bytes: int

    @property
    def space(self) -> Knobs:
        return Knobs(
            knobs={"rows": _TILES, "columns": _TILES, "sums": _TILES},
            guesses=({"rows": 16, "columns": 16, "sums": 64}, {"rows": 8, "columns": 32, "sums": 32}),
        )

    def refusal(self, configuration: Configuration) -> str:
        rows, columns, sums = (configuration[name] for name in ("rows", "columns", "sums"))
        needed = _FLOAT_BYTES * (rows * sums + sums * columns + rows * columns)
        return "" if needed <= self.scratchpad_bytes else f"its tiles need {needed} bytes of scratchpad"


class ProductImplementer(Implementer):
    """Writes a C function for each configuration; on a real accelerator this would be its own code."""

    name: ClassVar[str] = "abacus"

    def __init__(self, scratchpad_bytes: int) -> None:
        self._scratchpad_bytes = scratchpad_bytes

    def claim(self, kernel: ModelKernel) -> Claim | None:
        meaning = kernel.meaning
        if meaning is None or not _is_product(meaning):
            return None
        (rows, sums), (_, columns) = (one.shape for one in meaning.inputs[:2])
        return ProductClaim(
            meaning=meaning, sizes=(rows, columns, sums), scratchpad_bytes=self._scratchpad_bytes
        )

    def insert(self, claim: Any, configuration: Configuration, symbol: str) -> Insert | Failure:
        import tvm

        with tempfile.TemporaryDirectory(prefix="abacus-") as folder:
            source, built = Path(folder) / "product.c", Path(folder) / "product.o"
            source.write_text(source_of(claim, configuration, symbol))
            command = ["cc", "-O3", "-fPIC", "-c", "-o", str(built), str(source)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                return Failure(kind=FailureKind.BUILD_ERROR, message=done.stderr[:500])
            code = tvm.runtime.load_static_library(str(built), [symbol])
        return Insert(function=calling(symbol, claim.meaning), modules=(code,))


def _is_product(meaning: Meaning) -> bool:
    product, *after = meaning.steps
    plain = [one.operator for one in after]
    types = [*meaning.inputs, *(step.result for step in meaning.steps)]
    return (
        product.operator == "relax.matmul"
        and product.operands == (0, 1)
        and all(len(one.shape) == 2 for one in meaning.inputs[:2])
        and all(one.dtype == "float32" for one in types)
        and plain in ([], ["relax.nn.relu"], ["relax.add"], ["relax.add", "relax.nn.relu"])
        and (len(meaning.inputs) == 2 or meaning.inputs[2].shape[-1:] == product.result.shape[-1:])
        and (len(meaning.inputs) == 2 or all(extent == 1 for extent in meaning.inputs[2].shape[:-1]))
    )


def source_of(claim: ProductClaim, configuration: Configuration, symbol: str) -> str:
    """The C function of a configuration: tiles of the result, summed in pieces."""
    rows, columns, sums = claim.sizes
    biased = len(claim.meaning.inputs) > 2
    relu = claim.meaning.steps[-1].operator == "relax.nn.relu"
    start = "bias[j]" if biased else "0.0f"
    result = "s > 0.0f ? s : 0.0f" if relu else "s"
    return f"""
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
int {symbol}(const float *x, const float *w, {"const float *bias, " if biased else ""}float *y) {{
  for (int i = 0; i < {rows}; i++)
    for (int j = 0; j < {columns}; j++) y[i * {columns} + j] = {start};
  for (int k0 = 0; k0 < {sums}; k0 += {configuration["sums"]})
    for (int i0 = 0; i0 < {rows}; i0 += {configuration["rows"]})
      for (int j0 = 0; j0 < {columns}; j0 += {configuration["columns"]})
        for (int i = i0; i < LEAST(i0 + {configuration["rows"]}, {rows}); i++)
          for (int k = k0; k < LEAST(k0 + {configuration["sums"]}, {sums}); k++)
            for (int j = j0; j < LEAST(j0 + {configuration["columns"]}, {columns}); j++)
              y[i * {columns} + j] += x[i * {sums} + k] * w[k * {columns} + j];
  for (int i = 0; i < {rows * columns}; i++) {{ float s = y[i]; y[i] = {result}; }}
  return 0;
}}
"""
