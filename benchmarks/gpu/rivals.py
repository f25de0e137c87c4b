"""PyTorch's side of a row: the exported program with its outputs in float32, and what compiled code takes."""

import json
import statistics
import time
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from gpu.networks import Row, made
from gpu.turns import all_ready, held

COMPILED, SEARCHED = "reduce-overhead", "max-autotune"
PLAIN, CHANNELS_LAST = "plain", "channels_last"
WARM_UPS, LEAST_RUNS, MOST_RUNS, SECONDS, EAGER_S = 10, 50, 500, 1.0, 0.3


def export(row: Row, folder: Path, program: bool = True) -> None:
    """Write the program, and beside it the inputs and what the network computes of them in float32.

    NumPy has no bfloat16; inputs are stored in float32, which holds the same numbers. The program may be left
    out: PyTorch's times don't need it.
    """
    with torch.no_grad():
        module, inputs = made(row, "float32")
        outputs = _several(module(*inputs))
        named = {f"input{n}": value.numpy() for n, value in enumerate(inputs)}
        named |= {f"output{n}": value.float().numpy() for n, value in enumerate(outputs)}
        np.savez(folder / f"{row.file}.npz", **named)
        if program:
            module, inputs = made(row)
            torch.export.save(torch.export.export(module, inputs), folder / f"{row.file}.pt2")


def compare(row: Row, folder: Path, mode: str, group: int, program: bool = True) -> None:
    """Compile a mode in each memory format beside other rows, then time it with the GPU to itself.

    A line for each is written as it comes, eager execution first, failures among them. What the compiler
    measures of its own kernels it measures alone, and nothing is timed before all rows of the group are
    compiled.
    """
    if not (folder / f"{row.file}.{'pt2' if program else 'npz'}").is_file():
        export(row, folder, program)
    expected = outputs_of(row, folder)
    measure_alone(folder)
    modes = [("eager", PLAIN)] if mode == COMPILED else []
    with torch.no_grad(), (folder / f"{row.file}.{mode}.jsonl").open("w") as file:
        ready = [
            made_ready(row, *each, expected) for each in [*modes, *((mode, kind) for kind in layouts(row))]
        ]
        all_ready(folder, row.file, mode, group)
        for run, facts in ready:
            with held(folder):
                found = facts | (timed(run, EAGER_S if facts["mode"] == "eager" else SECONDS) if run else {})
            print(json.dumps(found), file=file, flush=True)


def outputs_of(row: Row, folder: Path) -> list[Any]:
    """What the network computes in float32."""
    with np.load(folder / f"{row.file}.npz") as stored:
        return [stored[f"output{n}"] for n in range(sum(name[:6] == "output" for name in stored.files))]


def made_ready(
    row: Row, mode: str, layout: str, expected: list[Any]
) -> tuple[Callable[[], Any] | None, dict[str, Any]]:
    """A run of the network in a mode and what is known of it; no run if it failed."""
    facts: dict[str, Any] = {"mode": mode, "layout": layout}
    started = time.perf_counter()
    try:
        run = eager(row) if mode == "eager" else compiled(row, layout, mode)
        got = _several(run())
        facts["compile_s"] = time.perf_counter() - started
        facts["difference"] = difference(got, expected)
        for _ in range(WARM_UPS):  # CUDA graphs are recorded in the second run
            run()
        torch.cuda.synchronize()
    except Exception as error:  # the other modes may work all the same
        return None, facts | {"error": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
    return run, facts


def measure_alone(folder: Path) -> None:
    """Have Inductor hold the GPU while it chooses between versions of a kernel by their times."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    choose = CachingAutotuner.benchmark_all_configs

    def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        with held(folder):
            return choose(self, *args, **kwargs)

    CachingAutotuner.benchmark_all_configs = alone


def layouts(row: Row) -> list[str]:
    """The memory formats to try: two for networks on images."""
    _, inputs = on_gpu(row)
    return [PLAIN, CHANNELS_LAST] if inputs[0].dim() == 4 else [PLAIN]


def eager(row: Row) -> Callable[[], Any]:
    """A run without compilation."""
    module, inputs = on_gpu(row)
    return lambda: module(*inputs)


def compiled(row: Row, layout: str, mode: str) -> Callable[[], Any]:
    """A run of the network as torch.compile makes it, for these sizes alone."""
    module, inputs = on_gpu(row)
    if layout == CHANNELS_LAST:
        module = deepcopy(module).to(memory_format=torch.channels_last)
        inputs = tuple(value.to(memory_format=torch.channels_last) for value in inputs)
    function = torch.compile(module, mode=mode, dynamic=False)
    return lambda: function(*inputs)


@cache
def on_gpu(row: Row) -> tuple[nn.Module, tuple[Any, ...]]:
    """The network and its inputs on the GPU, made once: that takes seconds for large ones."""
    module, inputs = made(row)
    return module.cuda(), tuple(value.cuda() for value in inputs)


def timed(run: Callable[[], Any], seconds: float = SECONDS) -> dict[str, Any]:
    """Seconds of single runs, each waited for: their median, and between which values most of them lie."""
    for _ in range(WARM_UPS):
        run()
    torch.cuda.synchronize()
    times: list[float] = []
    while len(times) < LEAST_RUNS or (sum(times) < seconds and len(times) < MOST_RUNS):
        started = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return spread(times)


def spread(times: list[float]) -> dict[str, Any]:
    """The median of some times and how they are spread."""
    ordered = sorted(times)
    low, high = ordered[len(ordered) // 10], ordered[9 * len(ordered) // 10]
    return {"seconds": statistics.median(ordered), "low_s": low, "high_s": high, "runs": len(ordered)}


def difference(got: list[Any], expected: list[Any]) -> float:
    """How far outputs are from those in float32, against their size."""
    found = []
    for one, other in zip(got, expected, strict=True):
        right = torch.from_numpy(other).double()
        found.append(float((one.double().cpu() - right).norm() / (right.norm() or 1.0)))
    return max(found)


def run_part(part: str, row: Row, folder: Path, group: int, program: bool = True) -> None:
    """What a process of this file does: export a row, or compare modes for it, its program exported too."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if part == "export":
        export(row, folder)
    else:
        compare(row, folder, part, group, program)


def _several(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]
