"""What TVM compiled of a model."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tuneloom.tuners.tvm.runner.runtimes import WholeModel
from tuneloom.tuners.tvm.runner.tensors import (
    InputTensors,
    array_of,
    as_given,
    borrowed,
    is_tensor,
    queued_on,
)
from tuneloom.tuners.tvm.runner.weights import on_device, stored_parameters


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
