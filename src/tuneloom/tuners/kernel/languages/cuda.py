"""CUDA C through NVRTC: knobs become macros, the kernel machine code for one architecture."""

import ctypes
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.kernel.expressions import value_of
from tuneloom.tuners.kernel.kernel import Built, Ran, WrongResult, spare_process
from tuneloom.tuners.kernel.languages.arguments import Argument, close, expected, made, outputs
from tuneloom.tuners.kernel.languages.driver import CudaError, architecture, called, compiled, driver
from tuneloom.tuners.kernel.space import Configuration

_REVEALED = {
    "registers": re.compile(r"Used (\d+) registers"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
    "spill_bytes": re.compile(r"(\d+) bytes spill stores"),
}


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code, the function in it, and the knobs it was built with."""

    code: bytes
    entry: str
    configuration: Configuration


@dataclass(frozen=True)
class CudaBuilder:
    """Compiles the source with every knob as a macro; reveals registers, shared memory, spills, code size.

    Without `arch` the code is for the first device of this machine.
    """

    source: str
    entry: str
    flags: tuple[str, ...] = ()
    arch: str = ""

    def prepared(self) -> "CudaBuilder":
        """The same for the architecture that is here, so that no build has to touch the device."""
        return self if self.arch else replace(self, arch=architecture())

    def __call__(self, configuration: Configuration) -> Built:
        """Build one configuration; raises CudaError with the compiler's log."""
        options = [f"--gpu-architecture={self.arch or architecture()}", "--ptxas-options=-v", *self.flags]
        options += [f"-D{name}={int(v) if isinstance(v, bool) else v}" for name, v in configuration.items()]
        code, log = _told(f'extern "C" {{\n{self.source}\n}}', options)
        return Built(Cubin(code, self.entry, configuration), _revealed(code, log))


def _told(source: str, options: list[str]) -> tuple[bytes, str]:
    """Machine code and a log that tells of registers: NVRTC keeps code it has compiled before, but no log."""
    code, log = compiled(source, options)
    if not _REVEALED["registers"].search(log):
        with suppress(CudaError):  # a version that keeps nothing does not know the option
            return compiled(source, [*options, "--no-cache"])
    return code, log


def _revealed(code: bytes, log: str) -> dict[str, float]:
    features = {"code_bytes": float(len(code))}
    for name, pattern in _REVEALED.items():
        features[name] = max((float(found) for found in pattern.findall(log)), default=0.0)
    return features


@dataclass(frozen=True)
class CudaRunner:
    """Launches the kernel on this process's device, checks its outputs, then times it with events.

    `grid` and `block` are expressions over the knobs.
    """

    device_key: ClassVar[str] = "cuda"
    arguments: tuple[Argument, ...]
    grid: tuple[str, ...]
    block: tuple[str, ...]
    reference: Callable[[list[Any]], Sequence[NDArray[Any]]] | None = None
    tolerance: float = 1e-3
    repeats: int = 5
    launches: int = 10

    def __call__(self, built: Cubin) -> Ran:
        """Run what was built; raises CudaError if it can't run, WrongResult if its outputs differ."""
        device = _Device()
        try:
            launch = self._prepared(device, built)
            launch()
            device.wait()
            self._check(device)
            return Ran(tuple(device.timed(launch, self.launches) for _ in range(self.repeats)))
        except CudaError as error:
            if device.answers():
                spare_process(error)
            raise
        finally:
            device.free()

    def _prepared(self, device: "_Device", built: Cubin) -> Callable[[], None]:
        device.load(built)
        device.upload(made(self.arguments))
        sizes = [_sizes(self.grid, built.configuration), _sizes(self.block, built.configuration)]
        return lambda: device.launch(sizes[0], sizes[1])

    def _check(self, device: "_Device") -> None:
        if self.reference is None:
            return
        right = expected(self.reference, self.arguments)
        if not close(outputs(self.arguments, device.download()), right, self.tolerance):
            raise WrongResult("the kernel computes something else than its reference")


def _sizes(texts: tuple[str, ...], configuration: Configuration) -> tuple[int, int, int]:
    sizes = [int(value_of(text, configuration)) for text in texts] + [1, 1]
    return sizes[0], sizes[1], sizes[2]


class _Device:
    """Memory and a loaded kernel on the first device, for one run."""

    def __init__(self) -> None:
        self._driver = driver()
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        self._values: list[Any] = []
        self._passed: list[Any] = []

    def load(self, built: Cubin) -> None:
        called(self._driver, "cuModuleLoadData", ctypes.byref(self._module), built.code)
        name = built.entry.encode()
        called(self._driver, "cuModuleGetFunction", ctypes.byref(self._function), self._module, name)

    def upload(self, values: list[Any]) -> None:
        self._values = values
        self._passed = [self._placed(value) for value in values]

    def _placed(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            kinds = {"i4": ctypes.c_int32, "i8": ctypes.c_int64, "f4": ctypes.c_float, "f8": ctypes.c_double}
            return kinds[value.dtype.str[1:]](value.item())
        address = ctypes.c_uint64()
        called(self._driver, "cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(value.nbytes))
        data = value.ctypes.data_as(ctypes.c_void_p)
        called(self._driver, "cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(value.nbytes))
        return address

    def launch(self, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        pointers = (ctypes.c_void_p * len(self._passed))(
            *[ctypes.cast(ctypes.pointer(item), ctypes.c_void_p) for item in self._passed]
        )
        called(self._driver, "cuLaunchKernel", self._function, *grid, *block, 0, None, pointers, None)

    def wait(self) -> None:
        called(self._driver, "cuCtxSynchronize")

    def answers(self) -> bool:
        """Whether the device still serves this process after an error."""
        return not self._driver.cuCtxSynchronize()

    def download(self) -> list[Any]:
        for value, address in zip(self._values, self._passed, strict=True):
            if isinstance(value, np.ndarray):
                data = value.ctypes.data_as(ctypes.c_void_p)
                called(self._driver, "cuMemcpyDtoH_v2", data, address, ctypes.c_size_t(value.nbytes))
        return self._values

    def timed(self, launch: Callable[[], None], launches: int) -> float:
        """Seconds per launch, between two events on the device."""
        events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in events:
            called(self._driver, "cuEventCreate", ctypes.byref(event), 0)
        called(self._driver, "cuEventRecord", events[0], None)
        for _ in range(launches):
            launch()
        called(self._driver, "cuEventRecord", events[1], None)
        called(self._driver, "cuEventSynchronize", events[1])
        spent = ctypes.c_float()
        called(self._driver, "cuEventElapsedTime", ctypes.byref(spent), events[0], events[1])
        for event in events:
            called(self._driver, "cuEventDestroy_v2", event)
        return max(spent.value / 1e3 / launches, 1e-9)

    def free(self) -> None:
        """Give everything back; errors are left to the run that caused them."""
        for value, address in zip(self._values, self._passed, strict=False):
            if isinstance(value, np.ndarray):
                self._driver.cuMemFree_v2(address)
        if self._module:
            self._driver.cuModuleUnload(self._module)
