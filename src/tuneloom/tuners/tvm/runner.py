"""Runs the bundle that this file is in. Needs TVM's runtime and NumPy, nothing else.

python run.py --input x.npy... --output y.npy...
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


class Refused(Exception):  # noqa: N818 - the name is the message
    """The bundle can't run here, or not on these inputs; the text says why."""


class Model:
    """The model of a bundle, ready to run: NumPy in, NumPy out."""

    def __init__(self, folder: Path) -> None:
        import tvm

        self.manifest: dict[str, Any] = json.loads((folder / "bundle.json").read_text())
        check_machine(self.manifest["target"])
        self._tensor = tvm.runtime.tensor
        self._device = tvm.device(self.manifest["target"]["device"])
        self._variants = [self._loaded(folder, self.manifest, [])]
        shared = self._variants[0][2]
        for number, entry in enumerate(self.manifest.get("shapes", []), 1):
            self._variants.append(self._loaded(folder / f"shapes_{number}", entry, shared))

    def _loaded(self, folder: Path, entry: dict[str, Any], shared: list[Any]) -> tuple[Any, Any, list[Any]]:
        """The model under one set of shapes: its entry, its machine, its parameters on the device."""
        import tvm
        from tvm.runtime.vm import VirtualMachine  # tvm.relax needs the compiler

        threads = int(self.manifest.get("provenance", {}).get("device_cores") or 1)
        provide(folder, entry.get("onnxruntime", []), threads)
        library = quietly(lambda: tvm.runtime.load_module(str(folder / "model.so")))
        machine = VirtualMachine(library, self._device)
        with np.load(folder / "parameters.npz") as stored:
            names: list[Any] = sorted(stored.files)
            if (folder / "shared.json").is_file():
                places = json.loads((folder / "shared.json").read_text())
                names = [f"p{n:05d}" if place is None else place for n, place in enumerate(places)]
            parameters = [
                shared[name] if isinstance(name, int) else self._tensor(stored[name], self._device)
                for name in names
            ]
        return entry, machine, parameters

    def run(self, values: Sequence[Any]) -> list[Any]:
        """All outputs for one array per input, in the order of the manifest."""
        entry, machine, parameters = self._fitting(values)
        infos = entry["inputs"]
        padded = [padded_to(value, info) for value, info in zip(values, infos, strict=True)]
        result = machine["main"](*(self._tensor(value, self._device) for value in padded), *parameters)
        count = len(entry["outputs"])
        outputs = [result.numpy()] if count == 1 else [result[n].numpy() for n in range(count)]
        return [cut(output, values, infos) for output in outputs]

    def _fitting(self, values: Sequence[Any]) -> tuple[Any, Any, list[Any]]:
        """The variant that has these shapes, or the smallest that holds them if the bundle pads."""
        wanted = self.manifest["inputs"]
        if len(values) != len(wanted):
            raise Refused(f"the model takes {len(wanted)} inputs, got {len(values)}")
        given = [list(value.shape) for value in values]
        for variant in self._variants:
            if given == [info["shape"] for info in variant[0]["inputs"]]:
                return variant
        holding = [one for one in self._variants if holds(one[0]["inputs"], given)]
        if self.manifest.get("pad") and holding:
            return min(holding, key=lambda one: sum(int(np.prod(i["shape"])) for i in one[0]["inputs"]))
        known = " or ".join(shown(entry["inputs"]) for entry, _, _ in self._variants)
        raise Refused(f"the model takes {known}, got {', '.join(map(str, map(tuple, given)))}")


def shown(infos: Sequence[dict[str, Any]]) -> str:
    """Inputs with their shapes, for people."""
    return ", ".join(f"{info['name']} {tuple(info['shape'])}" for info in infos)


def holds(infos: Sequence[dict[str, Any]], given: Sequence[Sequence[int]]) -> bool:
    """Whether all these shapes fit into those of the inputs."""
    pairs = [(small, info["shape"]) for small, info in zip(given, infos, strict=True)]
    return all(
        len(small) == len(large) and all(0 < a <= b for a, b in zip(small, large, strict=True))
        for small, large in pairs
    )


def padded_to(value: Any, info: dict[str, Any]) -> Any:
    """A value in the type and shape of an input, zeros after its end."""
    typed = value.astype(info["dtype"])
    if list(value.shape) == info["shape"]:
        return typed
    return np.pad(typed, [(0, b - a) for a, b in zip(value.shape, info["shape"], strict=True)])


def cut(output: Any, values: Sequence[Any], infos: Sequence[dict[str, Any]]) -> Any:
    """An output without what padding added: on axes that have the size of a padded axis of an input."""
    for value, info in zip(values, infos, strict=True):
        for axis, (own, size) in enumerate(zip(value.shape, info["shape"], strict=True)):
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


def onnx_part(path: Path, threads: int) -> Any:
    """A function of TVM that runs a part in ONNX Runtime."""
    try:
        import onnxruntime
    except ImportError as error:
        raise Refused("parts of this model run in ONNX Runtime; pip install onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return run_by_session(
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    )


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
        outputs = Model(Path(__file__).parent).run([np.load(path) for path in options.input])
        if len(outputs) != len(options.output):
            raise Refused(f"the model gives {len(outputs)} outputs; name as many with --output")
    except (Refused, OSError, ValueError) as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    for path, value in zip(options.output, outputs, strict=True):
        np.save(path, value)
    return 0


if __name__ == "__main__":
    sys.exit(main())
