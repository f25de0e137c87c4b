"""The last step: tuned kernels put into the model, compiled, saved, loaded and run."""

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tuneloom.backends.finding import backend_of
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.linking import link_with
from tuneloom.compiler.quiet import quiet_stderr
from tuneloom.compiler.threads import use_own_cores
from tuneloom.errors import BundleError, ModelError, reason_of
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.boards.bench import board_session
from tuneloom.tuners.tvm.boards.session import BoardSession
from tuneloom.tuners.tvm.importing.relax import ForeignPart
from tuneloom.tuners.tvm.lowering.graph import LoweredModel
from tuneloom.tuners.tvm.models.final_parameters import split_parameters
from tuneloom.tuners.tvm.models.foreign import ForeignModel, provide
from tuneloom.tuners.tvm.models.kernels import failing, with_schedules
from tuneloom.tuners.tvm.runner import InputTensors, array_of

Array = NDArray[Any]
LIBRARY = "model.so"
PARAMETERS = "parameters.npz"
SHARED = "shared.json"
"""For each parameter of a further variant, which of the first variant's it is, or null if it has its own."""


def part_file(number: int, runtime: str = "onnxruntime") -> str:
    """Where a bundle keeps a part that another runtime runs."""
    return f"part_{number}.{'tflite' if runtime == 'tflite' else 'onnx'}"


def parameter_name(number: int) -> str:
    """Under which name a bundle keeps a parameter; names are in the order of the parameters."""
    return f"p{number:05d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledModel:
    """An executable and its parameters; runs in this process."""

    executable: Any = field(repr=False, compare=False)
    parameters: tuple[Array, ...] = field(repr=False, compare=False)
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    foreign: tuple[ForeignPart, ...] = field(default=(), repr=False)
    linker: str = ""
    """What links it for another machine than this one."""
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
        np.savez(folder / PARAMETERS, **named)

    def export_program(self, folder: Path) -> None:
        """Write the library, and the parts that another runtime runs, without the parameters."""
        self.export_library(folder / LIBRARY)
        for number, part in enumerate(self.foreign):
            (folder / part_file(number, part.runtime)).write_bytes(part.content)

    def export_library(self, path: Path) -> None:
        """Write the library alone."""
        with_linker = {"fcompile": link_with(self.linker)} if self.linker else {}
        self.executable.export_library(str(path), **with_linker)

    def open(self) -> "OpenModel":
        """Put the parameters on its device, ready to run; on the board, if this process holds one.

        Raises BundleError if a part needs ONNX Runtime and that is not there.
        """
        board = board_session()
        if board is None:
            return self.deployed()
        if self.foreign:
            raise BundleError("parts of this model need another runtime, which boards lack; add --only-tvm")
        return BoardModel(board, self._library(), self.parameters, self.device)

    def deployed(self) -> "OpenModel":
        """As a bundle runs it in this process: what another runtime has as a whole runs in that alone."""
        whole = next((part for part in self.foreign if part.whole), None)
        return self.open_here() if whole is None else ForeignModel(whole, self.threads)

    def open_here(self) -> "RunningModel":
        """The program in this process, whatever that holds."""
        provide(self.foreign, self.threads)
        return RunningModel(self.executable, self.parameters, self.outputs, self.device)

    def _library(self) -> bytes:
        with tempfile.TemporaryDirectory(prefix="tuneloom-") as folder:
            self.export_library(Path(folder) / LIBRARY)
            return (Path(folder) / LIBRARY).read_bytes()


class OpenModel(Protocol):
    """A model with its parameters on a device; used by one thread."""

    def run(self, values: Sequence[Array]) -> list[Array]:
        """NumPy in, NumPy out, in the order of the model's interface."""

    def timer(self, values: Sequence[Array]) -> Callable[[], float]:
        """A function that runs the model once on these values and returns the seconds."""


class RunningModel:
    """A model in this process."""

    def __init__(
        self, executable: Any, parameters: Sequence[Array], outputs: Sequence[TensorInfo], device: str
    ) -> None:
        tvm = load_tvm()
        from tvm import relax

        use_own_cores()
        self._tvm = tvm
        self._outputs = tuple(outputs)
        self.device = tvm.device(device)
        self._machine = relax.VirtualMachine(executable, self.device)
        self._parameters = [tvm.runtime.tensor(value, self.device) for value in parameters]
        self._inputs = InputTensors(tvm.runtime.tensor, self.device)

    def run(self, values: Sequence[Array]) -> list[Array]:
        """NumPy in, NumPy out, in the order of the model's interface."""
        result = self.invoke(self._inputs.holding(values))
        fields = [result] if len(self._outputs) == 1 else [result[i] for i in range(len(self._outputs))]
        return [array_of(one) for one in fields]

    def timer(self, values: Sequence[Array]) -> Callable[[], float]:
        tensors = [self._tvm.runtime.tensor(value, self.device) for value in values]

        def once() -> float:
            started = time.perf_counter()
            self.invoke(tensors)
            self.device.sync()
            return time.perf_counter() - started

        return once

    def invoke(self, values: Sequence[Any]) -> Any:
        """Run on tensors that are on the device already; for timing."""
        return self._machine["main"](*values, *self._parameters)

    def watch(self, instrument: Any) -> None:
        """Call a function before and after everything the model calls, from now on."""
        self._machine.set_instrument(instrument)


class BoardModel:
    """A model on a board. Times are taken there, so that the network does not count."""

    def __init__(self, board: BoardSession, library: bytes, parameters: Sequence[Array], device: str) -> None:
        tvm = load_tvm()
        from tvm import relax

        self._tensor = tvm.runtime.tensor
        self.device = board.device(device)
        self._machine = relax.VirtualMachine(board.load(library), self.device)
        self._parameters = [self._tensor(value, self.device) for value in parameters]

    def run(self, values: Sequence[Array]) -> list[Array]:
        self._give(values)
        self._machine.invoke_stateful("main")
        result = self._machine.get_outputs("main")
        return [one.numpy() for one in (result if isinstance(result, tuple) else (result,))]

    def timer(self, values: Sequence[Array]) -> Callable[[], float]:
        self._give(values)
        evaluate = self._machine.time_evaluator("invoke_stateful", self.device, number=1, repeat=1)
        return lambda: float(evaluate("main").results[0])

    def _give(self, values: Sequence[Array]) -> None:
        tensors = [self._tensor(value, self.device) for value in values]
        self._machine.set_input("main", *tensors, *self._parameters)


def build_model(lowered: LoweredModel, schedules: Mapping[str, str], *, guess: bool = False) -> CompiledModel:
    """Compile a model with these schedules (task key → trace as JSON text).

    Kernels without a schedule are compiled as they are, or with `guess` by the template's
    first guess. A schedule that TVM can't compile is not used, and the model's `unscheduled`
    says why. Raises ModelError if TVM can't compile the model without it either.
    """
    try:
        return _built(lowered, with_schedules(lowered, schedules, guess=guess))
    except Exception as error:
        failed = failing(lowered, schedules, guess=guess)
        if not failed:
            raise ModelError(f"TVM can't compile {lowered.name}: {reason_of(error)}") from error
    rest = with_schedules(lowered, schedules, guess=guess, without=failed)
    try:
        return replace(_built(lowered, rest), unscheduled=failed)
    except Exception as error:
        raise ModelError(f"TVM can't compile {lowered.name}: {reason_of(error)}") from error


def _built(lowered: LoweredModel, scheduled_module: Any) -> CompiledModel:
    tvm = load_tvm()
    from tvm import relax

    module, parameters = split_parameters(scheduled_module)
    target = lowered.target.to_tvm()
    with target, tvm.transform.PassContext(opt_level=3):
        passes = tvm.transform.Sequential(backend_of(lowered.target).finishing(lowered.target))
        executable = relax.build(module, target, relax_pipeline=passes)
    return CompiledModel(
        executable=executable,
        parameters=tuple(parameters),
        inputs=lowered.inputs,
        outputs=lowered.outputs,
        foreign=lowered.foreign,
        linker=lowered.target.linker if lowered.target.cross else "",
        threads=lowered.target.cores,
        device=lowered.target.device,
    )


def build_plain(lowered: LoweredModel) -> CompiledModel:
    """Compile a model as it came in, whose loops have no schedule."""
    return build_model(replace(lowered, target=lowered.target.in_little_time()), {})


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
    tvm = load_tvm()
    try:
        with quiet_stderr():
            executable = tvm.runtime.load_module(str(folder / LIBRARY))
        parameters = _parameters(folder, shared)
        parts = [_stored_part(folder, entry) for entry in foreign]
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


def _parameters(folder: Path, shared: Sequence[Array]) -> tuple[Array, ...]:
    with np.load(folder / PARAMETERS) as stored:
        if not (folder / SHARED).is_file():
            return tuple(stored[name] for name in sorted(stored.files))
        places: list[int | None] = json.loads((folder / SHARED).read_text())
        return tuple(
            stored[parameter_name(number)] if place is None else shared[place]
            for number, place in enumerate(places)
        )


def _stored_part(folder: Path, entry: Mapping[str, Any]) -> ForeignPart:
    return ForeignPart(
        function=entry["function"],
        operators=tuple(entry["operators"]),
        content=(folder / Path(entry["file"]).name).read_bytes(),
        runtime="tflite" if entry["file"].endswith(".tflite") else "onnxruntime",
        whole=bool(entry.get("whole")),
    )
