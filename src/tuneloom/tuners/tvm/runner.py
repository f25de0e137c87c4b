"""Runs the bundle that this file is in. Needs NumPy and what the bundle runs in: TVM's runtime or another.

python run.py --input x.npy... --output y.npy...
"""

import argparse
import atexit
import ctypes
import io
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

CPU = 1
"""DLPack's number for memory of the host."""
ON_HOST = ("CPUExecutionProvider",)
"""Where ONNX Runtime runs what is left to it."""
ONNXRUNTIME = "onnxruntime"
PACKAGES = {"tflite": "ai-edge-litert"}
"""What brings a runtime, where that has another name."""
ALIGNMENT = 64
"""Where compiled code expects its tensors to begin, in bytes."""
ELSEWHERE = "parameters.json"
"""Says in which file the weights are, and where they begin in it, if a bundle is one file."""
ASKED = "asked.log"
"""Which sizes were asked for, if a dimension varies: in each line, sizes and how often."""
ASKED_ELSEWHERE = "asked.json"
"""Says in which file they are, if a bundle is one file."""
TYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "BOOL": "bool",
    **{f"{kind[0].upper()}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}
"""Names of types in a safetensors file."""


class Refused(Exception):  # noqa: N818 - the name is the message
    """The bundle can't run here, or not on these inputs; the text says why."""


class Model:
    """The model of a bundle, ready to run: NumPy in, NumPy out; or tensors of its device, without copies."""

    def __init__(self, folder: Path) -> None:
        self.manifest: dict[str, Any] = json.loads((folder / "bundle.json").read_text())
        check_machine(self.manifest["target"])
        load_libraries(self.manifest.get("requires", []))
        self.state = KeptState(self.manifest)
        self._variants = [self._loaded(folder, self.manifest, [])]
        shared = getattr(self._variants[0][1], "parameters", [])
        for number, entry in enumerate(self.manifest.get("shapes", []), 1):
            self._variants.append(self._loaded(folder / f"shapes_{number}", entry, shared))
        self.sizes = Sizes(self.manifest, folder) if "sizes" in self.manifest else None

    def _loaded(self, folder: Path, entry: dict[str, Any], shared: list[Any]) -> tuple[Any, Any]:
        """The model under one set of shapes: its entry, and what runs it."""
        threads = int(self.manifest.get("provenance", {}).get("device_cores") or 1)
        parts = entry.get("onnxruntime", [])
        for part in parts:
            if part.get("whole"):
                file = str(folder / Path(part["file"]).name)
                return entry, WholeModel(run_by(part.get("runtime", ONNXRUNTIME), file, entry, threads))
        provide(folder, parts, threads)
        return entry, CompiledProgram(
            folder, self.manifest["target"]["device"], len(entry["outputs"]), shared
        )

    def run(self, values: Sequence[Any], stream: int | None = None) -> list[Any]:
        """All outputs for one array per input, in the order of the manifest.

        Tensors of the model's device, of any library that speaks DLPack, are read where they are, and tensors
        come back: PyTorch's for PyTorch's, otherwise ones that `from_dlpack` takes. Work is queued on
        `stream` (a handle), by default on PyTorch's current one for its tensors; nobody waits for it.
        """
        values = self.state.complete(values)
        if self.sizes is not None:
            return self.sizes.run(values, lambda number, own: self._run(*self._variants[number], own, stream))
        return self.state.keep(self._run(*self._fitting(values), values, stream))

    def _run(self, entry: Any, program: Any, values: Sequence[Any], stream: int | None) -> list[Any]:
        infos = entry["inputs"]
        if any(map(is_tensor, values)):
            return run_where_they_are(program, values, infos, stream)
        pairs = zip(values, infos, strict=True)
        padded = [padded_to(value, info["shape"], info["dtype"]) for value, info in pairs]
        given, shapes = [value.shape for value in values], [info["shape"] for info in infos]
        return [cut(output, given, shapes) for output in program.run(padded)]

    def on_tensors(self, values: Sequence[Any]) -> list[Any]:
        """All outputs for tensors with DLPack, in the first shapes and types; nothing is copied."""
        return self._variants[0][1].on_tensors(values)  # type: ignore[no-any-return]

    def _fitting(self, values: Sequence[Any]) -> tuple[Any, Any]:
        """The variant that has these shapes, or the smallest that holds them if the bundle pads."""
        given = [list(value.shape) for value in values]
        for variant in self._variants:
            if given == [info["shape"] for info in variant[0]["inputs"]]:
                return variant
        holding = [
            one
            for one in self._variants
            if all(fits(small, info["shape"]) for small, info in zip(given, one[0]["inputs"], strict=True))
        ]
        if self.manifest.get("pad") and holding and not any(map(is_tensor, values)):
            return min(holding, key=lambda one: sum(int(np.prod(i["shape"])) for i in one[0]["inputs"]))
        known = " or ".join(shown(entry["inputs"]) for entry, _ in self._variants)
        raise Refused(f"the model takes {known}, got {', '.join(map(str, map(tuple, given)))}")


class Sizes:
    """A dimension that varies: which programs run a size, on which rows, and how their outputs are joined.

    A size runs in its own program, in a larger one with zeros after its end, or in several, one after the
    other. The manifest's table says which, from what each program takes.
    """

    def __init__(self, manifest: dict[str, Any], folder: Path | None = None) -> None:
        told = manifest["sizes"]
        self.low, self.high = told["low"], told["high"]
        self._programs, self._table = told["programs"], told["table"]
        self._axes: dict[str, list[int]] = told["inputs"]
        self._infos = manifest["inputs"]
        outputs = [told["outputs"].get(info["name"], []) for info in manifest["outputs"]]
        self._outputs = [dict(map(tuple, axes)) for axes in outputs]
        self._log = None if folder is None else SizeLog(folder)

    def run(self, values: Sequence[Any], program: Callable[[int, list[Any]], list[Any]]) -> list[Any]:
        """All outputs; `program` runs the program of this number on values that have its shapes."""
        size = self.size_of(values)
        if self._log is not None:
            self._log.note(size)
        runs, begin, made = self._table[size - self.low], 0, []
        for number in runs:
            count = min(self._programs[number], size - begin)
            rows = [self._rows(value, info, begin, count) for value, info in self._pairs(values)]
            full = [self._filled(row, info, number) for row, info in self._pairs(rows)]
            outputs = program(number, full)
            made.append([self._kept(out, n, count, number) for n, out in enumerate(outputs)])
            begin += count
        return [
            joined(parts, axes) for parts, axes in zip(zip(*made, strict=True), self._outputs, strict=True)
        ]

    def size_of(self, values: Sequence[Any]) -> int:
        """The size of the dimension that varies; refused if out of range or not the same everywhere."""
        found: dict[int, str] = {}
        for value, info in self._pairs(values):
            name, varying = info["name"], self._axes.get(info["name"], ())
            shape = tuple(value.shape)
            if len(shape) != len(info["shape"]):
                raise Refused(f"{name} has {len(shape)} dimensions; it must have {len(info['shape'])}")
            for axis, (size, wanted) in enumerate(zip(shape, info["shape"], strict=True)):
                if axis in varying and not self.low <= size <= self.high:
                    raise Refused(f"dimension {axis} of {name} must be {self.low} to {self.high}, got {size}")
                if axis not in varying and size != wanted:
                    raise Refused(f"dimension {axis} of {name} must be {wanted}, got {size}")
                if axis in varying:
                    found.setdefault(size, f"{name} has {size} in dimension {axis}")
        if len(found) > 1:
            raise Refused(f"{' and '.join(found.values())}; give them the same size")
        return next(iter(found))

    def _pairs(self, values: Sequence[Any]) -> Any:
        return zip(values, self._infos, strict=True)

    def _rows(self, value: Any, info: dict[str, Any], begin: int, count: int) -> Any:
        for axis in self._axes.get(info["name"], ()):
            if value.shape[axis] != count:
                value = value[(slice(None),) * axis + (slice(begin, begin + count),)]
        return value

    def _filled(self, value: Any, info: dict[str, Any], number: int) -> Any:
        varying, size = self._axes.get(info["name"], ()), self._programs[number]
        shape = [size if axis in varying else own for axis, own in enumerate(info["shape"])]
        return filled(value, shape) if is_tensor(value) else padded_to(value, shape, info["dtype"])

    def _kept(self, output: Any, place: int, count: int, number: int) -> Any:
        if count == self._programs[number]:
            return output
        for axis, factor in self._outputs[place].items():
            output = output[(slice(None),) * axis + (slice(factor * count),)]
        return output


class SizeLog:
    """How often each size was asked for: counted here, and appended to the bundle's log now and then."""

    def __init__(self, folder: Path) -> None:
        place = folder / ASKED_ELSEWHERE
        self._path = Path(json.loads(place.read_text())) if place.is_file() else folder / ASKED
        self._counts: dict[int, int] = {}
        self._runs, self._next = 0, 1

    def note(self, size: int) -> None:
        """Count one run; what is counted is written after 1, 2, 4, … runs, and when the process ends."""
        if not self._runs:
            atexit.register(self.write)
        self._counts[size] = self._counts.get(size, 0) + 1
        self._runs += 1
        if self._runs >= self._next:
            self._next *= 2
            self.write()

    def write(self) -> None:
        """Append what was counted since; nothing where the folder can't be written to."""
        counts, self._counts = self._counts, {}
        with suppress(OSError):
            if counts:
                with self._path.open("a") as file:
                    file.write(json.dumps(counts) + "\n")

    def read(self) -> dict[int, int]:
        """What all processes have written so far; lines that can't be read are left out."""
        total: dict[int, int] = {}
        with suppress(OSError):
            for line in self._path.read_text().splitlines():
                with suppress(ValueError, AttributeError, TypeError):
                    for size, count in json.loads(line).items():
                        total[int(size)] = total.get(int(size), 0) + int(count)
        return total


def filled(tensor: Any, shape: Sequence[int]) -> Any:
    """A tensor of PyTorch's with zeros after its end."""
    if not hasattr(tensor, "new_zeros"):
        if list(tensor.shape) == list(shape):
            return tensor
        raise Refused("only arrays and PyTorch's tensors can be padded or divided; give one of these")
    if list(tensor.shape) == list(shape):
        whole = tensor.contiguous()
        return whole if whole.data_ptr() % ALIGNMENT == 0 else whole.clone()
    whole = tensor.new_zeros(tuple(shape))
    whole[tuple(map(slice, tensor.shape))] = tensor
    return whole


def joined(parts: Sequence[Any], axes: dict[int, int]) -> Any:
    """The outputs of several runs as one."""
    if len(parts) == 1:
        return parts[0]
    axis = next(iter(axes))
    if is_tensor(parts[0]):
        return sys.modules["torch"].cat(list(parts), axis)
    return np.concatenate(parts, axis)


class KeptState:
    """What a model keeps from one run to the next: inputs that nobody gives, outputs that nobody sees."""

    def __init__(self, manifest: dict[str, Any]) -> None:
        pairs = {pair["input"]: pair for pair in manifest.get("state", [])}
        after = {pair["output"]: name for name, pair in pairs.items()}
        self._inputs = [(info, pairs.get(info["name"])) for info in manifest["inputs"]]
        self._outputs = [after.get(info["name"]) for info in manifest["outputs"]]
        self._values: dict[str, Any] = {}
        self.inputs = [info for info, pair in self._inputs if pair is None]
        manifest_outputs = zip(manifest["outputs"], self._outputs, strict=True)
        self.outputs = [info for info, name in manifest_outputs if name is None]
        self.reset()

    def reset(self) -> None:
        """Begin again as before the first run."""
        for info, pair in self._inputs:
            if pair is not None:
                value = np.array(pair.get("initial", 0), type_named(info["dtype"]))
                self._values[info["name"]] = np.broadcast_to(value, info["shape"]).copy()

    def complete(self, values: Sequence[Any]) -> list[Any]:
        """The values of all inputs."""
        if len(values) != len(self.inputs):
            names = ", ".join(info["name"] for info in self.inputs)
            raise Refused(f"the model takes {len(self.inputs)} inputs ({names}), got {len(values)}")
        given = iter(values)
        return [next(given) if pair is None else self._values[info["name"]] for info, pair in self._inputs]

    def keep(self, outputs: Sequence[Any]) -> list[Any]:
        """Those outputs that are seen; the others are for the next run."""
        named = list(zip(self._outputs, outputs, strict=True))
        self._values |= {name: value for name, value in named if name is not None}
        return [value for name, value in named if name is None]


class CompiledProgram:
    """What TVM compiled of the model, with its parameters on the device."""

    def __init__(self, folder: Path, device: str, outputs: int, shared: list[Any]) -> None:
        import tvm
        from tvm.runtime.vm import VirtualMachine  # tvm.relax needs the compiler

        tensor, where = tvm.runtime.tensor, tvm.device(device)
        self._inputs, self._outputs, self.device = InputTensors(tensor, where), outputs, where
        library = quietly(lambda: tvm.runtime.load_module(str(folder / "model.so")))
        self._machine = VirtualMachine(library, where)
        self._main = self._machine["main"]
        stored = stored_parameters(folder)
        names: list[Any] = sorted(stored)
        if (folder / "shared.json").is_file():
            places = json.loads((folder / "shared.json").read_text())
            names = [f"p{n:05d}" if place is None else place for n, place in enumerate(places)]
        self.parameters = [
            shared[name] if isinstance(name, int) else on_device(stored[name], where) for name in names
        ]

    def run(self, values: Sequence[Any]) -> list[Any]:
        """All outputs for values that have the shapes and types of the inputs."""
        result = self._main(*self._inputs.holding(values), *self.parameters)
        return [array_of(result if self._outputs == 1 else result[n]) for n in range(self._outputs)]

    def on_tensors(self, values: Sequence[Any]) -> list[Any]:
        """All outputs, as tensors that have DLPack, for such tensors on the device of the program."""
        result = self._main(*values, *self.parameters)
        return [result] if self._outputs == 1 else list(result)


def run_where_they_are(
    program: Any, values: Sequence[Any], infos: Sequence[dict[str, Any]], stream: int | None
) -> list[Any]:
    """All outputs for tensors of a program's device, which are neither copied nor waited for.

    Arrays among them, such as a state before its first run, are put there.
    """
    if isinstance(program, WholeModel):
        return program.on_tensors(values)
    tensors = [borrowed(value, info, program.device) for value, info in zip(values, infos, strict=True)]
    with queued_on(program.device, values, stream):
        made = program.on_tensors(tensors)
    given = next(value for value in values if is_tensor(value))
    return [as_given(given, tensor) for tensor in made]


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of some library, not of NumPy."""
    return hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, np.generic))


def borrowed(value: Any, info: dict[str, Any], device: Any) -> Any:
    """The tensor of a caller as one of TVM's in the same memory; refused if code can't read it there."""
    import tvm

    if not is_tensor(value):
        return tvm.runtime.tensor(np.ascontiguousarray(value), device)
    place, wanted = tuple(map(int, value.__dlpack_device__())), (device.dlpack_device_type(), device.index)
    if place != tuple(map(int, wanted)):
        raise Refused(f"{info['name']} is not on {device}, where the model runs; move it there")
    try:
        tensor = tvm.runtime.from_dlpack(value)
    except (RuntimeError, ValueError, TypeError, BufferError) as error:
        why = str(error).strip().splitlines()[-1]
        raise Refused(f"{info['name']} can't be used where it is ({why}); give a contiguous copy") from error
    if list(tensor.shape) != info["shape"] or str(tensor.dtype) != info["dtype"]:
        got = f"{tensor.dtype} {tuple(tensor.shape)}"
        raise Refused(f"{info['name']} must be {info['dtype']} {tuple(info['shape'])}, got {got}")
    return tensor


def queued_on(device: Any, values: Sequence[Any], stream: int | None) -> Any:
    """Where work of a GPU goes meanwhile: to a stream of the caller; on a CPU there is none."""
    import tvm_ffi

    torch = sys.modules.get("torch")
    if int(device.dlpack_device_type()) == CPU:
        return nullcontext()
    if stream is None and torch is not None and any(isinstance(value, torch.Tensor) for value in values):
        stream = int(torch.cuda.current_stream(device.index).cuda_stream)
    return nullcontext() if stream is None else tvm_ffi.use_raw_stream(device, stream)


def as_given(value: Any, tensor: Any) -> Any:
    """A tensor of TVM's as one of PyTorch's, if the caller's was."""
    torch = sys.modules.get("torch")
    return torch.from_dlpack(tensor) if torch is not None and isinstance(value, torch.Tensor) else tensor


def stored_parameters(folder: Path) -> dict[str, Any]:
    """The weights in a folder of a bundle, by name; older ones are in a NumPy archive."""
    if (folder / "parameters.safetensors").is_file():
        return mapped(folder / "parameters.safetensors")
    if (folder / ELSEWHERE).is_file():
        return mapped(*json.loads((folder / ELSEWHERE).read_text()))
    with np.load(folder / "parameters.npz") as stored:
        return {name: stored[name] for name in stored.files}


def mapped(path: Path, begin: int = 0) -> dict[str, Any]:
    """The arrays of a safetensors file, whose pages are read when they are used and shared by processes."""
    raw = np.memmap(path, np.uint8, mode="c", offset=begin)
    start = 8 + int.from_bytes(raw[:8].tobytes(), "little")
    header = json.loads(raw[8:start].tobytes())
    found = {}
    for name, entry in header.items():
        if name != "__metadata__":
            first, end = (start + place for place in entry["data_offsets"])
            found[name] = raw[first:end].view(type_named(TYPES[entry["dtype"]])).reshape(entry["shape"])
    return found


def type_named(name: str) -> Any:
    """A type of NumPy, or one that a package of TVM's adds to it."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def on_device(value: Any, device: Any) -> Any:
    """Weights as a tensor of a device; what is mapped stays where it is if code can read it there."""
    import tvm

    here = isinstance(value, np.memmap) and int(device.dlpack_device_type()) == CPU
    if here and value.dtype.kind in "iuf" and value.size and value.ctypes.data % ALIGNMENT == 0:
        return tvm.runtime.from_dlpack(value)
    return tvm.runtime.tensor(np.ascontiguousarray(value), device)


class InputTensors:
    """Tensors that a model reads its inputs from, on a CPU kept from run to run.

    New ones in every run would cost more than a small model takes: memory that is mapped, and a page fault
    for each 4 KiB of it. Used by one thread.
    """

    def __init__(self, tensor: Any, device: Any) -> None:
        self._tensor, self._device = tensor, device
        self._tensors: list[Any] = []
        self._views: list[Any] = []

    def holding(self, values: Sequence[Any]) -> list[Any]:
        """Tensors with these values; good until the next call."""
        if not self._shareable(values):
            return [self._tensor(value, self._device) for value in values]
        if not self._fit(values):
            self._tensors = [self._tensor(value, self._device) for value in values]
            self._views = [np.from_dlpack(tensor) for tensor in self._tensors]
        for view, value in zip(self._views, values, strict=True):
            np.copyto(view, value, casting="no")
        return self._tensors

    def _shareable(self, values: Sequence[Any]) -> bool:
        """Whether NumPy sees the memory: on a CPU, of truth values and numbers that both know."""
        kinds = all(isinstance(value, np.ndarray) and value.dtype.kind in "biuf" for value in values)
        return kinds and int(self._device.dlpack_device_type()) == CPU

    def _fit(self, values: Sequence[Any]) -> bool:
        return len(values) == len(self._views) and all(
            view.shape == value.shape and view.dtype == value.dtype
            for view, value in zip(self._views, values, strict=True)
        )


def array_of(tensor: Any) -> Any:
    """A copy of a tensor."""
    try:
        return np.array(np.from_dlpack(tensor))
    except (RuntimeError, BufferError, TypeError):  # on a GPU, or of a type that NumPy lacks
        return tensor.numpy()


class WholeModel:
    """A model that another runtime runs as a whole, with nothing around it."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def run(self, values: Sequence[Any]) -> list[Any]:
        """All outputs for values that have the shapes and types of the inputs."""
        return list(self._run(values))

    def on_tensors(self, values: Sequence[Any]) -> list[Any]:
        """The same for tensors that have DLPack."""
        return self.run([np.from_dlpack(value) for value in values])


def shown(infos: Sequence[dict[str, Any]]) -> str:
    """Inputs with their shapes, for people."""
    return ", ".join(f"{info['name']} {tuple(info['shape'])}" for info in infos)


def fits(small: Sequence[int], large: Sequence[int]) -> bool:
    """Whether a value of one shape can be padded to another."""
    return len(small) == len(large) and all(0 < a <= b for a, b in zip(small, large, strict=True))


def padded_to(value: Any, shape: Sequence[int], dtype: str) -> Any:
    """A value in the type and shape of an input, zeros after its end."""
    typed = value.astype(dtype, copy=False)
    if value.shape == tuple(shape):
        return typed
    whole = np.zeros(shape, typed.dtype)  # np.pad takes longer than a small model
    whole[tuple(map(slice, value.shape))] = typed
    return whole


def cut(output: Any, given: Sequence[Sequence[int]], shapes: Sequence[Sequence[int]]) -> Any:
    """An output without what padding added: on axes that have the size of a padded axis of an input."""
    for small, large in zip(given, shapes, strict=True):
        for axis, (own, size) in enumerate(zip(small, large, strict=True)):
            if own != size and axis < output.ndim and output.shape[axis] == size:
                output = output[(slice(None),) * axis + (slice(own),)]
    return output


def provide(folder: Path, parts: Sequence[dict[str, Any]], threads: int = 1) -> None:
    """Make the parts of the model that another runtime runs known to TVM, before it loads the rest."""
    if not parts:
        return
    import tvm_ffi

    for part in parts:
        path = folder / Path(part["file"]).name
        run = (litert_part if path.suffix == ".tflite" else onnx_part)(path, threads)
        tvm_ffi.register_global_func(part["function"], run, override=True)


def run_by(runtime: str, model: str | bytes, entry: dict[str, Any], threads: int) -> Any:
    """A function from inputs to outputs, in the order of an entry, that a runtime runs alone.

    `model` is a file or what is in one. Raises Refused if the runtime is not installed.
    """
    makers = {ONNXRUNTIME: by_session, "openvino": by_openvino, "tflite": by_litert, "torch": by_torch}
    if runtime not in makers:
        raise Refused(f"this model runs in {runtime}, which this version does not know; tune it again")
    try:
        return makers[runtime](model, entry, threads)
    except ImportError as error:
        package = PACKAGES.get(runtime, runtime)
        raise Refused(f"this model runs in {runtime}, which is missing; pip install {package}") from error


def by_session(model: str | bytes, entry: dict[str, Any], threads: int) -> Any:
    """A whole model in ONNX Runtime."""
    session = onnx_session(model, threads)
    names = [one.name for one in session.get_inputs()]
    return lambda values: session.run(None, dict(zip(names, values, strict=True)))


def by_openvino(model: str | bytes, entry: dict[str, Any], threads: int) -> Any:
    """The same in OpenVINO, which would compute in half precision on some CPUs unless it is told."""
    import openvino

    core = openvino.Core()
    with as_file(model) as given:
        read = core.read_model(given)
    ports = in_order(read.inputs, entry["inputs"])
    read.reshape({p: info["shape"] for p, info in zip(ports, entry["inputs"], strict=True)})
    settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(read, "CPU", settings)
    request = compiled.create_infer_request()
    inputs = in_order(compiled.inputs, entry["inputs"])
    outputs = in_order(compiled.outputs, entry["outputs"])

    def run(values: Sequence[Any]) -> list[Any]:
        found = request.infer(dict(zip(inputs, values, strict=True)), share_inputs=True)
        return [found[port] for port in outputs]

    return run


@contextmanager
def as_file(model: str | bytes) -> Iterator[str | bytes]:
    """What OpenVINO reads: content of an ONNX file as it is, that of TensorFlow Lite's only from a file."""
    if isinstance(model, str) or model[4:8] != b"TFL3":
        yield model
        return
    with tempfile.TemporaryDirectory(prefix="tuneloom-") as folder:
        (Path(folder) / "model.tflite").write_bytes(model)
        yield str(Path(folder) / "model.tflite")


def in_order(ports: Sequence[Any], infos: Sequence[dict[str, Any]]) -> list[Any]:
    """OpenVINO's ports in the order of a manifest: by their names, or as they come where names are others."""
    if len(ports) != len(infos):
        raise ValueError(f"OpenVINO has {len(ports)} tensors where the model has {len(infos)}")
    named = {name: port for port in ports for name in port.get_names()}
    known = [named.get(info["name"]) for info in infos]
    return list(ports) if any(port is None for port in known) else known


def by_litert(model: str | bytes, entry: dict[str, Any], threads: int) -> Any:
    """The same in LiteRT."""
    from ai_edge_litert.interpreter import Interpreter

    where: dict[str, Any] = {"model_path" if isinstance(model, str) else "model_content": model}
    interpreter = Interpreter(**where, num_threads=threads)
    places = [detail["index"] for detail in interpreter.get_input_details()]
    if len(places) != len(entry["inputs"]):
        raise Refused("this model keeps its state inside LiteRT")
    for place, info in zip(places, entry["inputs"], strict=True):
        interpreter.resize_tensor_input(place, info["shape"])
    interpreter.allocate_tensors()
    found = {detail["name"]: detail["index"] for detail in interpreter.get_output_details()}
    pairs = zip(entry["outputs"], found.values(), strict=True)
    ordered = [found.get(info["name"], place) for info, place in pairs]

    def run(values: Sequence[Any]) -> list[Any]:
        for place, value in zip(places, values, strict=True):
            interpreter.set_tensor(place, value)
        interpreter.invoke()
        return [interpreter.get_tensor(place) for place in ordered]

    return run


def by_torch(model: str | bytes, entry: dict[str, Any], threads: int) -> Any:
    """The same in PyTorch, eagerly."""
    import torch

    torch.set_num_threads(threads)
    program = torch.export.load(model if isinstance(model, str) else io.BytesIO(model)).module()

    def run(values: Sequence[Any]) -> list[Any]:
        with torch.no_grad():
            found = program(*(torch.from_numpy(np.array(value)) for value in values))
        return [one.numpy() for one in (found if isinstance(found, (tuple, list)) else (found,))]

    return run


def onnx_session(model: str | bytes, threads: int, providers: Sequence[Any] = ON_HOST) -> Any:
    """A session of ONNX Runtime, as the bundle was timed with, for a file or what is in one."""
    try:
        import onnxruntime
    except ImportError as error:
        raise Refused("this model, or parts of it, run in ONNX Runtime; pip install onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=list(providers))


def onnx_part(path: Path, threads: int) -> Any:
    """A function of TVM that runs a part in ONNX Runtime."""
    return run_by_session(onnx_session(str(path), threads))


def litert_part(path: Path, threads: int) -> Any:
    """The same for a part that LiteRT runs."""
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise Refused("parts of this model run in LiteRT; pip install ai-edge-litert") from error
    return run_by_interpreter(Interpreter(model_path=str(path), num_threads=threads))


def run_by_session(session: Any) -> Any:
    """A function of TVM that a session of ONNX Runtime runs: it gets the inputs, then where the outputs go.

    It returns the outputs instead if it is not told where they go.
    """
    given, made = session.get_inputs(), session.get_outputs()
    names = [one.name for one in (*given, *made)]
    binding = session.io_binding()
    binds = [binding.bind_input] * len(given) + [binding.bind_output] * len(made)

    def fill(*tensors: Any) -> None:
        """Everything stays where it is: the session reads and writes the tensors of the program."""
        for bind, name, tensor in zip(binds, names, tensors, strict=True):
            there = np.from_dlpack(tensor)
            bind(name, "cpu", 0, there.dtype, there.shape, there.ctypes.data)
        session.run_with_iobinding(binding)

    def give(*tensors: Any) -> Any:
        values = [tensor.numpy() for tensor in tensors]
        return returned(session.run(None, dict(zip(names, values, strict=False))))

    return lambda *tensors: (fill if len(tensors) > len(given) else give)(*tensors)


def run_by_interpreter(interpreter: Any) -> Any:
    """A function of TVM that an interpreter of LiteRT runs: it gets the inputs, then where the outputs go."""
    inputs = [detail["index"] for detail in interpreter.get_input_details()]
    outputs = [detail["index"] for detail in interpreter.get_output_details()]

    def run(*tensors: Any) -> None:
        values = [tensor.numpy() for tensor in tensors[: len(inputs)]]
        for place, value in zip(inputs, values, strict=True):
            interpreter.resize_tensor_input(place, value.shape)
        interpreter.allocate_tensors()  # nothing happens where shapes are as before
        for place, value in zip(inputs, values, strict=True):
            interpreter.set_tensor(place, value)
        interpreter.invoke()
        for place, target in zip(outputs, tensors[len(inputs) :], strict=True):
            target.copyfrom(interpreter.get_tensor(place))

    return run


def returned(values: Sequence[Any]) -> Any:
    """Outputs whose sizes depend on data: no memory could be planned for them."""
    import tvm

    made = [tvm.runtime.tensor(np.asarray(value, order="C")) for value in values]
    return made[0] if len(made) == 1 else made


def check_machine(target: dict[str, Any]) -> None:
    """Refuse code for another CPU: it would die of an illegal instruction."""
    if target["machine"] != platform.machine():
        raise Refused(
            f"built for {target['machine']}, this machine is {platform.machine()}; tune it again here"
        )
    present = cpu_flags()
    lacking = [name for name, flag in target["cpu_flags"].items() if present and flag not in present]
    if lacking:
        raise Refused(
            f"built for CPU {target['mcpu']!r}, this one lacks {', '.join(lacking)}; tune it again here"
        )


def load_libraries(requires: Sequence[dict[str, Any]]) -> None:
    """Load the libraries that code in the bundle calls, so that it finds them; refuse if one is missing.

    Of several versions of a library the first that can be loaded is enough.
    """
    for one in requires:
        found = ((name, *files_of(package, name)) for name, package in one["libraries"].items())
        if not any(can_load(path) for paths in found for path in paths):
            raise Refused(
                f"code of {one['implementer']} in this bundle needs {' or '.join(one['libraries'])}; "
                f"install the package {' or '.join(one['libraries'].values())}"
            )


def can_load(path: str) -> bool:
    """Whether a shared library could be loaded, which stays in this process."""
    try:
        return bool(ctypes.CDLL(path))
    except OSError:
        return False


def files_of(package: str, name: str) -> list[str]:
    """Where an installed package of Python has files of this name: the linker does not look there."""
    try:
        return [str(file.locate()) for file in metadata.files(package) or () if file.name == name]
    except metadata.PackageNotFoundError:
        return []


def cpu_flags() -> set[str]:
    """What the kernel says the CPU can do; nothing where it does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    rows = (line.partition(":") for line in lines)
    row = "Features" if platform.machine().startswith(("aarch64", "arm")) else "flags"
    found = (value for key, _, value in rows if key.strip() == row)
    return set(next(found, "").split())


def quietly(load: Any) -> Any:
    """Call something without what it prints to stderr from C++."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        return load()
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def main() -> int:
    """Run the model once on files."""
    parser = argparse.ArgumentParser(description="Run this bundle once on NumPy files.")
    parser.add_argument("--input", nargs="+", required=True, metavar="X.npy", help="one for each input")
    parser.add_argument("--output", nargs="+", required=True, metavar="Y.npy", help="one for each output")
    options = parser.parse_args()
    try:
        outputs = Model(Path(__file__).parent).run([array_in(path) for path in options.input])
        if len(outputs) != len(options.output):
            raise Refused(f"the model gives {len(outputs)} outputs; name as many with --output")
        for path, value in zip(options.output, outputs, strict=True):
            # NumPy's files have no bfloat16.
            np.save(path, value.astype(np.float32) if value.dtype.name == "bfloat16" else value)
    except (Refused, OSError, ValueError) as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    return 0


def array_in(path: str) -> Any:
    """The array of a NumPy file; nothing that such a file could execute is."""
    try:
        with Path(path).open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise Refused(f"{path} can't be read as a NumPy array: {error}; write it with numpy.save") from error


if __name__ == "__main__":
    sys.exit(main())
