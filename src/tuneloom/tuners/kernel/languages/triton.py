"""Triton kernels: knobs become compile-time constants, `num_warps` and `num_stages` launch options.

Triton compiles for the device of its process, so building needs the GPU as well.
"""

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from tuneloom.errors import SpaceError
from tuneloom.tuners.kernel.kernel import Built, Ran, WrongResult, spare_process
from tuneloom.tuners.kernel.space import Configuration


@dataclass(frozen=True)
class TritonKernel:
    """One Triton function of a Python file, as builder and runner.

    The file is imported in the worker. Besides the jitted function `entry` it has
    `arguments()`, which returns the tensors and numbers, `grid(configuration)`, and, if
    `checked`, `reference(arguments)`, which returns what the argument at the place
    `output` must become.
    """

    device_key: ClassVar[str] = "cuda"
    builds_on_device: ClassVar[bool] = True
    path: str
    entry: str
    output: int
    checked: bool = True
    tolerance: float = 1e-2
    repeats: int = 5
    launches: int = 20

    def build(self, configuration: Configuration) -> Built:
        """Compile one configuration; raises what Triton raises. What is built is the configuration itself."""
        module = _imported(self.path)
        function, grid = getattr(module, self.entry), module.grid(configuration)
        compiled = function.warmup(*module.arguments(), grid=grid, **configuration)
        _load_on_device(compiled)
        return Built(dict(configuration), _revealed(compiled))

    def run(self, configuration: Configuration) -> Ran:
        """Launch, check and time one configuration; raises WrongResult if its output differs."""
        try:
            return self._measured(configuration)
        except Exception as error:
            if _device_answers():
                spare_process(error)
            raise

    def _measured(self, configuration: Configuration) -> Ran:
        import torch

        module = _imported(self.path)
        arguments, grid = list(module.arguments()), module.grid(configuration)
        function = getattr(module, self.entry)[grid]

        def launch() -> None:
            function(*arguments, **configuration)

        launch()
        torch.cuda.synchronize()
        if self.checked:
            self._check(arguments, module.reference(arguments))
        return Ran(tuple(self._timed(launch) for _ in range(self.repeats)))

    def _check(self, arguments: Sequence[Any], right: Any) -> None:
        import torch

        computed = arguments[self.output].to(torch.float32)
        scale = float(right.abs().max()) or 1.0
        off = float((computed - right.to(torch.float32)).abs().max())
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


def _device_answers() -> bool:
    """Whether the device still serves this process after an error."""
    import torch

    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


@lru_cache(maxsize=8)
def _imported(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("tuneloom_triton_kernel", path)
    if spec is None or spec.loader is None:
        raise SpaceError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
