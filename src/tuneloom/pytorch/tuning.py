"""Tunes one graph, in a process of its own: python -m tuneloom.pytorch.tuning FOLDER

The folder has the graph and the job. What comes of it is written there, and every time a line to stdout.
The process stops when its stdin is closed.
"""

import _thread
import fcntl
import json
import os
import shutil
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.requests.sources import device_for
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.errors import InputError, NothingMeasured, TuneloomError
from tuneloom.pytorch.options import FIRST, JOB, REFUSED, TUNED, CompileOptions
from tuneloom.tuners.tvm.models.rivals.torch_programs import DISABLED


def main(place: str) -> int:
    """Tune the graph of a folder; 0 if its bundle is there, or was already."""
    folder = Path(place)
    threading.Thread(target=_watch, daemon=True).start()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may have the same graph
        try:
            if not (folder / TUNED).is_dir():
                _make(folder, json.loads((folder / JOB).read_text()))
        except (InputError, NothingMeasured) as error:
            (folder / REFUSED).write_text(f"{error}\n")
            return 1
        except TuneloomError as error:
            print(error, file=sys.stderr)
            return 1
    print(TUNED, flush=True)
    return 0


def _watch() -> None:
    sys.stdin.read()
    _thread.interrupt_main()


def _make(folder: Path, job: Mapping[str, Any]) -> None:
    options = CompileOptions(**job["options"])
    model, shapes = folder / job["file"], job["shapes"]
    if model.suffix == ".pt":
        model, shapes = export(model, job["inputs"], job["tensors"])
    asked = {**options.of_job(), "name": job["name"], "model": str(model), "target": job["target"]}
    if shapes:
        asked["shapes"] = shapes
    if options.server is not None:
        _tune_remotely(asked, options.server, folder / TUNED)
    else:
        settings = RunSettings(store=options.store, device_cores=job["cores"])
        if options.mode != "wait":
            _tune({**asked, "trials": 1}, settings, folder / FIRST)
            print(FIRST, flush=True)
        _tune(asked, settings, folder / TUNED)
    for one in (FIRST, "graph.pt", "graph.pt2"):  # weights are kept once, in the bundle
        shutil.rmtree(folder / one) if (folder / one).is_dir() else (folder / one).unlink(missing_ok=True)


def on_cpu(module: Any) -> None:
    """Let a graph that was captured on another device make its tensors on the CPU."""
    import torch
    from torch.fx.node import map_aggregate

    def moved(value: Any) -> Any:
        return torch.device("cpu") if isinstance(value, torch.device) else value

    for node in module.graph.nodes:
        node.args, node.kwargs = map_aggregate(node.args, moved), map_aggregate(node.kwargs, moved)
    for name, value in list(vars(module).items()):
        if isinstance(value, torch.Tensor):  # made while the graph was read
            setattr(module, name, value.cpu())
    module.recompile()


def export(path: Path, inputs: list[int], tensors: list[int]) -> tuple[Path, dict[str, Any]]:
    """Export a graph module and its arguments, on the CPU; what is no input becomes part of the program.

    Returns the file, and the shapes of its inputs if a dimension varies.
    """
    import torch

    from tuneloom.pytorch.fast_paths import without_fast_paths
    from tuneloom.pytorch.varying import VaryingInputs
    from tuneloom.tuners.tvm.importing.torch.files import write_module

    module, arguments, bounds, numbers = torch.load(path, weights_only=False, map_location="cpu")
    on_cpu(module)
    without_fast_paths(module)
    axes = {n: [axis for axis, (low, high) in enumerate(pairs) if low < high] for n, pairs in bounds.items()}

    class BoundGraph(torch.nn.Module):  # type: ignore[misc]
        """The graph as a function of its inputs."""

        def __init__(self) -> None:
            super().__init__()
            self.captured = module  # torch can't lift constants of a part that is called graph
            for place, value in enumerate(arguments):
                if place not in inputs and isinstance(value, torch.Tensor):
                    self.register_buffer(f"weight_{place}", value.detach())

        def forward(self, *values: Any) -> Any:
            given = dict(zip(inputs, values, strict=True))
            size = next((given[n].shape[varying[0]] for n, varying in axes.items()), None)
            given.update(dict.fromkeys(numbers, size))
            every = [
                given[n] if n in given else getattr(self, f"weight_{n}", value)
                for n, value in enumerate(arguments)
            ]
            found = self.captured(*every)
            return tuple(found[place] for place in tensors)

    exported = path.with_suffix(".pt2")
    pair = next((pair for pairs in bounds.values() for pair in pairs if pair[0] < pair[1]), None)
    dim = None if pair is None else torch.export.Dim("size", min=pair[0], max=pair[1])
    shapes = None if dim is None else (tuple(dict.fromkeys(axes.get(n, ()), dim) for n in inputs),)
    program = write_module(BoundGraph(), [arguments[place] for place in inputs], exported, shapes)
    varying = None if dim is None else VaryingInputs.of(program)
    return exported, {} if varying is None else varying.shapes


def _tune(asked: Mapping[str, Any], settings: RunSettings, out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    os.environ[DISABLED] = "1"  # the model's own calls compare both, on their own inputs
    spec = job_spec({**asked, "device": device_for(asked["target"]), "out": str(out)})
    outcome = tune([spec], settings, "torch.compile")
    if outcome.failure is not None:
        raise outcome.failure


def _tune_remotely(asked: Mapping[str, Any], server: str, out: Path) -> None:
    from tuneloom.client import Client

    with Client(server) as client:
        wanted: Any = {name: value for name, value in asked.items() if name != "model"}
        client.submit(asked["model"], **wanted).wait().fetch(out)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
