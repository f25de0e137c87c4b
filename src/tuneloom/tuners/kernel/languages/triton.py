"""Triton kernels: knobs become compile-time constants, `num_warps` and `num_stages` launch options.

Triton compiles for the device of its process, so building needs the GPU as well.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tuneloom.tuners.kernel.kernel import Built, Ran, WrongResult
from tuneloom.tuners.kernel.space import Configuration


@dataclass(frozen=True)
class TritonKernel:
    """One Triton function as builder and runner.

    `load` returns the jitted function (it is called in the worker, so that importing
    triton stays there), `arguments` its tensors and numbers, `grid` the launch grid of
    a configuration, `output` the place of the argument it computes, `reference` the
    right output for the arguments.
    """

    load: Callable[[], Any]
    arguments: Callable[[], Sequence[Any]]
    grid: Callable[[Configuration], tuple[int, ...]]
    output: int
    reference: Callable[[Sequence[Any]], Any] | None = None
    tolerance: float = 1e-2
    repeats: int = 5
    launches: int = 20

    def build(self, configuration: Configuration) -> Built:
        """Compile one configuration; raises what Triton raises. What is built is the configuration itself."""
        compiled = self.load().warmup(*self.arguments(), grid=self.grid(configuration), **configuration)
        _load_on_device(compiled)
        return Built(dict(configuration), _revealed(compiled))

    def run(self, configuration: Configuration) -> Ran:
        """Launch, check and time one configuration; raises WrongResult if its output differs."""
        import torch

        function, arguments = self.load(), list(self.arguments())

        def launch() -> None:
            function[self.grid(configuration)](*arguments, **configuration)

        launch()
        torch.cuda.synchronize()
        self._check(arguments)
        return Ran(tuple(self._timed(launch) for _ in range(self.repeats)))

    def _check(self, arguments: Sequence[Any]) -> None:
        if self.reference is None:
            return
        import torch

        right, computed = self.reference(arguments), arguments[self.output]
        scale = float(right.abs().max()) or 1.0
        off = float((computed.to(torch.float32) - right.to(torch.float32)).abs().max())
        if not off <= self.tolerance * scale:
            raise WrongResult(f"off by {off:.3g} where values reach {scale:.3g}")

    def _timed(self, launch: Callable[[], None]) -> float:
        """Seconds per launch, between two events on the device."""
        import torch

        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(self.launches):
            launch()
        last.record()
        torch.cuda.synchronize()
        return max(float(first.elapsed_time(last)) / 1e3 / self.launches, 1e-9)


def _load_on_device(compiled: Any) -> None:
    """Make Triton load the machine code, which is when registers and spills are known."""
    prepare = getattr(compiled, "_init_handles", None)
    if prepare is not None:
        prepare()


def _revealed(compiled: Any) -> dict[str, float]:
    metadata = getattr(compiled, "metadata", None)
    code = getattr(compiled, "asm", {}).get("cubin", b"")
    found = {
        "registers": getattr(compiled, "n_regs", None),
        "spill_bytes": getattr(compiled, "n_spills", None),
        "shared_bytes": getattr(metadata, "shared", None),
        "code_bytes": len(code),
    }
    return {name: float(value) for name, value in found.items() if value is not None}
