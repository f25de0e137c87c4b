"""A compiled model: saved, loaded and opened."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.linking import NATIVE, compiler_here, link_with
from tuneloom.compiler.quiet import quiet_stderr
from tuneloom.errors import BundleError, reason_of
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.boards.bench import board_session
from tuneloom.tuners.tvm.importing.relax import ForeignPart
from tuneloom.tuners.tvm.models.compiling.foreign import ForeignModel, provide
from tuneloom.tuners.tvm.models.compiling.running import Array, BoardModel, OpenModel, RunningModel
from tuneloom.tuners.tvm.models.compiling.storing import PARAMETERS, write_parameters
from tuneloom.tuners.tvm.runner.weights import stored_parameters

LIBRARY = "model.so"
SHARED = "shared.json"
"""For each parameter of a further variant, which of the first variant's it is, or null if it has its own."""


def part_file(number: int, part: ForeignPart) -> str:
    """Where a bundle keeps a part that another runtime runs."""
    return f"part_{number}{part.suffix}"


def foreign_entries(parts: Sequence[ForeignPart]) -> tuple[dict[str, Any], ...]:
    """How a bundle tells of the parts that another runtime runs."""
    return tuple(
        {
            "function": part.function,
            "file": part_file(number, part),
            "operators": list(part.operators),
            **({"whole": True, "runtime": part.runtime} if part.whole else {}),
        }
        for number, part in enumerate(parts)
    )


def parameter_name(number: int) -> str:
    """Under which name a bundle keeps a parameter; names are in the order of the parameters."""
    return f"p{number:05d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledModel:
    """A linked program and its parameters; runs in this process unless it was linked for another machine."""

    library: bytes = field(default=b"", repr=False, compare=False)
    """The shared library; empty for a bundle, whose file is loaded as `executable`."""
    executable: Any = field(default=None, repr=False, compare=False)
    parameters: tuple[Array, ...] = field(repr=False, compare=False)
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    foreign: tuple[ForeignPart, ...] = field(default=(), repr=False)
    threads: int = 1
    """How many threads its foreign parts may use."""
    device: str = "cpu"
    """What TVM's runtime calls the device that it runs on."""
    unscheduled: Mapping[str, str] = field(default_factory=dict)
    """Why the schedules of some kernels could not be used, by the key of their task."""

    def export(self, folder: Path) -> None:
        """Write the library and, beside it, the parameters."""
        self.export_program(folder)
        named: dict[str, Any] = {parameter_name(i): value for i, value in enumerate(self.parameters)}
        write_parameters(folder / PARAMETERS, named)

    def export_program(self, folder: Path) -> None:
        """Write the library, and the parts that another runtime runs, without the parameters."""
        if not self.is_foreign:
            (folder / LIBRARY).write_bytes(self.library)
        for number, part in enumerate(self.foreign):
            (folder / part_file(number, part)).write_bytes(part.content)

    def open(self) -> OpenModel:
        """Put the parameters on its device, ready to run; on the board, if this process holds one.

        Raises BundleError if a part needs ONNX Runtime and that is not there.
        """
        board = board_session()
        if board is None:
            return self.deployed()
        if self.foreign:
            raise BundleError("parts of this model need another runtime, which boards lack; add --only-tvm")
        return BoardModel(board, self.library, self.parameters, self.device)

    def deployed(self, placed: dict[int, Any] | None = None) -> OpenModel:
        """As a bundle runs it in this process: what another runtime has as a whole runs in that alone.

        `placed` has weights that are on the device already, by the identity of their arrays; it grows.
        """
        if not self.is_foreign:
            return self.open_here(placed)
        return ForeignModel(self.foreign[0], self.threads, self.inputs, self.outputs)

    @property
    def is_foreign(self) -> bool:
        """Whether another runtime has all of the model, so that there is no program."""
        return any(part.whole for part in self.foreign)

    def open_here(self, placed: dict[int, Any] | None = None) -> RunningModel:
        """The program in this process, whatever that holds."""
        provide(self.foreign, self.threads)
        executable = self.executable or _loaded(self.library)
        return RunningModel(executable, self.parameters, self.outputs, self.device, placed)


def linked(executable: Any, linker: str) -> bytes:
    """A program as a shared library: machine code is made once, for running it here and for a bundle.

    `linker` is what links it for another machine than this one. Here a compiler's driver does, which adds
    what code in half precision may call, or the linker alone where no compiler is installed.
    """
    linker = linker or ("" if compiler_here() else NATIVE)
    with_linker = {"fcompile": link_with(linker)} if linker else {}
    with tempfile.TemporaryDirectory(prefix="tuneloom-") as folder:
        executable.export_library(str(Path(folder) / LIBRARY), **with_linker)
        return (Path(folder) / LIBRARY).read_bytes()


def _loaded(library: bytes) -> Any:
    with tempfile.TemporaryDirectory(prefix="tuneloom-") as folder:
        (Path(folder) / LIBRARY).write_bytes(library)
        return load_tvm().runtime.load_module(str(Path(folder) / LIBRARY))


def load_compiled(
    folder: Path,
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    foreign: Sequence[Mapping[str, Any]] = (),
    shared: Sequence[Array] = (),
    threads: int = 1,
    device: str = "cpu",
) -> CompiledModel:
    """Load what `export` wrote; raises BundleError when it can't be loaded.

    `shared` are the parameters of the bundle's first variant, for a further one that has some of them.
    """
    try:
        parts = [_stored_part(folder, entry) for entry in foreign]
        whole = any(part.whole for part in parts)
        executable = None if whole else _program(folder)
        parameters = () if whole else _parameters(folder, shared)
    except (OSError, ValueError, RuntimeError) as error:
        raise BundleError(f"{folder}: can't load the compiled model: {reason_of(error)}") from error
    return CompiledModel(
        executable=executable,
        parameters=parameters,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        foreign=tuple(parts),
        threads=threads,
        device=device,
    )


def _program(folder: Path) -> Any:
    with quiet_stderr():
        return load_tvm().runtime.load_module(str(folder / LIBRARY))


def _parameters(folder: Path, shared: Sequence[Array]) -> tuple[Array, ...]:
    stored = stored_parameters(folder)
    if not (folder / SHARED).is_file():
        return tuple(stored[name] for name in sorted(stored))
    places: list[int | None] = json.loads((folder / SHARED).read_text())
    return tuple(
        stored[parameter_name(number)] if place is None else shared[place]
        for number, place in enumerate(places)
    )


def _stored_part(folder: Path, entry: Mapping[str, Any]) -> ForeignPart:
    file = folder / Path(entry["file"]).name
    return ForeignPart(
        function=entry["function"],
        operators=tuple(entry["operators"]),
        content=file.read_bytes(),
        runtime=entry.get("runtime") or ("tflite" if file.suffix == ".tflite" else "onnxruntime"),
        whole=bool(entry.get("whole")),
        suffix=file.suffix,
    )
