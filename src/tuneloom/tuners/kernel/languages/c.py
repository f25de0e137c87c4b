"""C through the system's compiler: knobs become macros, the kernel a shared library."""

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.errors import SpaceError
from tuneloom.tuners.kernel.kernel import Built, Ran, WrongResult
from tuneloom.tuners.kernel.languages.arguments import Argument, KnownOutputs, close, expected, made, outputs
from tuneloom.tuners.kernel.space import Configuration

_NUMBERS = {
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
_ERROR_LINES = re.compile(r"^.*\berror:.*$", re.MULTILINE)


def compiler() -> str:
    """The C compiler: $CC, or the first of cc, gcc and clang; raises SpaceError without one."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and shutil.which(name):
            return name
    raise SpaceError("no C compiler found; install gcc or clang, or set CC")


@dataclass(frozen=True)
class CBuilder:
    """Compiles the source with every knob as a macro; reveals code size and stack use (spilled values)."""

    source: str
    flags: tuple[str, ...] = ("-O3", "-march=native")
    timeout_s: float = 60.0

    def __call__(self, configuration: Configuration) -> Built:
        """Build one configuration; raises RuntimeError with the compiler's first errors."""
        with tempfile.TemporaryDirectory(prefix="tuneloom-c-") as folder:
            library = Path(folder) / "kernel.so"
            self._compile(
                Path(folder), library, [f"-D{name}={_macro(v)}" for name, v in configuration.items()]
            )
            return Built(library.read_bytes(), _revealed(Path(folder), library))

    def _compile(self, folder: Path, library: Path, macros: list[str]) -> None:
        file = folder / "kernel.c"
        file.write_text(self.source)
        command = [compiler(), "-shared", "-fPIC", "-fstack-usage", *self.flags, *macros]
        command += ["-o", str(library), str(file), "-lm"]
        try:
            done = subprocess.run(
                command, capture_output=True, cwd=folder, timeout=self.timeout_s, check=False
            )
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the compiler took more than {self.timeout_s:g} s") from None
        if done.returncode:
            text = done.stderr.decode(errors="replace")
            errors = _ERROR_LINES.findall(text) or [text[-300:]]
            raise RuntimeError("; ".join(errors[:3]))


def _macro(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _revealed(folder: Path, library: Path) -> dict[str, float]:
    stack = 0.0
    for file in folder.glob("*.su"):
        sizes = [float(line.split("\t")[1]) for line in file.read_text().splitlines() if "\t" in line]
        stack = max([stack, *sizes])
    return {"code_bytes": float(_text_size(library)), "stack_bytes": stack}


def _text_size(library: Path) -> int:
    """The size of the code, by `size` where binutils are there, else of the whole file."""
    tool = shutil.which("size")
    if tool is None:
        return library.stat().st_size
    done = subprocess.run([tool, str(library)], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    return int(lines[1].split()[0]) if len(lines) > 1 else library.stat().st_size


@dataclass(frozen=True)
class CRunner:
    """Calls a function of the library with the arguments, checks its outputs, then times it."""

    entry: str
    arguments: tuple[Argument, ...]
    reference: Callable[[list[Any]], Sequence[NDArray[Any]]] | None = None
    tolerance: float = 1e-3
    repeats: int = 5
    min_repeat_s: float = 0.01

    def prepared(self) -> "CRunner":
        """The same with the reference computed, so that no trial has to."""
        if self.reference is None:
            return self
        right = expected(self.reference, self.arguments)
        return replace(self, reference=KnownOutputs(tuple(right)))

    def __call__(self, library: bytes) -> Ran:
        """Run what was built; raises WrongResult if its outputs differ from the reference."""
        with _loaded(library, self.entry) as function:
            return self._measured(function)

    def _measured(self, function: Any) -> Ran:
        values = made(self.arguments)
        passed = [_passed(value) for value in values]
        function(*passed)
        if self.reference is not None:
            right = expected(self.reference, self.arguments)
            if not close(outputs(self.arguments, values), right, self.tolerance):
                raise WrongResult(f"{self.entry} computes something else than its reference")
        return Ran(self._timed(function, passed), None)

    def _timed(self, function: Any, passed: list[Any]) -> tuple[float, ...]:
        began = time.perf_counter()
        function(*passed)
        once = max(time.perf_counter() - began, 1e-9)
        number = max(1, int(self.min_repeat_s / once))
        times = []
        for _ in range(self.repeats):
            began = time.perf_counter()
            for _ in range(number):
                function(*passed)
            times.append((time.perf_counter() - began) / number)
        return tuple(times)


@contextmanager
def _loaded(library: bytes, entry: str) -> Iterator[Any]:
    """A function of a library, whose file is needed only while it is called."""
    with tempfile.TemporaryDirectory(prefix="tuneloom-c-") as folder:
        path = Path(folder) / "kernel.so"
        path.write_bytes(library)
        function = getattr(ctypes.CDLL(str(path)), entry)
        function.restype = None
        yield function


def _passed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.ctypes.data_as(ctypes.c_void_p)
    return _NUMBERS[str(value.dtype)](value.item())


@dataclass(frozen=True)
class CReference:
    """Another function, compiled once without knobs and trusted to be right."""

    source: str
    entry: str
    arguments: tuple[Argument, ...]

    def __call__(self, values: list[Any]) -> list[NDArray[Any]]:
        """The right outputs for these values."""
        with _loaded(CBuilder(self.source, ("-O2",))({}).payload, self.entry) as function:
            function(*[_passed(value) for value in values])
        return outputs(self.arguments, values)
