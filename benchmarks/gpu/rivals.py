"""PyTorch's side of a row: the exported program with its outputs in float32, and what compiled code takes."""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from gpu.networks import Row, made

COMPILED, SEARCHED = "reduce-overhead", "max-autotune"
PLAIN, CHANNELS_LAST = "plain", "channels_last"
WARM_UPS, LEAST_RUNS, MOST_RUNS, SECONDS = 10, 50, 500, 1.0


def export(row: Row, folder: Path) -> None:
    """Write the program, and beside it the inputs and what the network computes of them in float32.

    NumPy has no bfloat16; inputs are stored in float32, which holds the same numbers.
    """
    with torch.no_grad():
        module, inputs = made(row, "float32")
        outputs = _several(module(*inputs))
        named = {f"input{n}": value.numpy() for n, value in enumerate(inputs)}
        named |= {f"output{n}": value.float().numpy() for n, value in enumerate(outputs)}
        np.savez(folder / f"{row.file}.npz", **named)
        module, inputs = made(row)
        torch.export.save(torch.export.export(module, inputs), folder / f"{row.file}.pt2")


def prepare(row: Row, folder: Path) -> None:
    """Compile what `compare` will run, so that it finds code in the compiler's cache; nothing is timed.

    Other processes use the GPU meanwhile: what the compiler measures of its own code now must not be kept.
    """
    from torch._inductor import config

    if hasattr(config, "autotune_local_cache"):
        config.autotune_local_cache = False
    with torch.no_grad():
        for layout in layouts(row):
            run = compiled(row, layout, COMPILED)
            run()


def compare(row: Row, folder: Path, mode: str) -> Iterator[dict[str, Any]]:
    """Time a mode in each memory format, eager execution before it; a line for each, failures among them."""
    with np.load(folder / f"{row.file}.npz") as stored:
        expected = [stored[f"output{n}"] for n in range(sum(name[:6] == "output" for name in stored.files))]
    modes = [(mode, layout) for layout in layouts(row)]
    with torch.no_grad():
        for each, layout in [("eager", PLAIN), *modes] if mode == COMPILED else modes:
            facts: dict[str, Any] = {"mode": each, "layout": layout}
            started = time.perf_counter()
            try:
                run = eager(row) if each == "eager" else compiled(row, layout, each)
                got = _several(run())
                facts["compile_s"] = time.perf_counter() - started
                facts["difference"] = difference(got, expected)
                yield facts | timed(run)
            except Exception as error:  # the other modes may work all the same
                yield facts | {"error": " ".join(f"{type(error).__name__}: {error}".split())[:300]}


def layouts(row: Row) -> list[str]:
    """The memory formats to try: two for networks on images."""
    _, inputs = on_gpu(row)
    return [PLAIN, CHANNELS_LAST] if inputs[0].dim() == 4 else [PLAIN]


def eager(row: Row) -> Callable[[], Any]:
    """A run without compilation."""
    module, inputs = on_gpu(row)
    return lambda: module(*inputs)


def compiled(row: Row, layout: str, mode: str) -> Callable[[], Any]:
    """A run of the network as torch.compile makes it; a plain one before one in another format."""
    torch._dynamo.reset()  # what it learned of the other format would make sizes variable
    module, inputs = on_gpu(row)
    if layout == CHANNELS_LAST:
        module = module.to(memory_format=torch.channels_last)
        inputs = tuple(value.to(memory_format=torch.channels_last) for value in inputs)
    function = torch.compile(module, mode=mode)
    return lambda: function(*inputs)


@cache
def on_gpu(row: Row) -> tuple[nn.Module, tuple[Any, ...]]:
    """The network and its inputs on the GPU, made once: that takes seconds for large ones."""
    module, inputs = made(row)
    return module.cuda(), tuple(value.cuda() for value in inputs)


def timed(run: Callable[[], Any]) -> dict[str, Any]:
    """Seconds of single runs, each waited for: their median, and between which values most of them lie."""
    for _ in range(WARM_UPS):
        run()
    torch.cuda.synchronize()
    times: list[float] = []
    while len(times) < LEAST_RUNS or (sum(times) < SECONDS and len(times) < MOST_RUNS):
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


def run_part(part: str, row: Row, folder: Path) -> None:
    """What a process of this file does; comparisons are written line by line, so that some survive."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if part in ("export", "prepare"):
        (export if part == "export" else prepare)(row, folder)
        return
    with (folder / f"{row.file}.{part}.jsonl").open("w") as file:
        for facts in compare(row, folder, SEARCHED if part == "search" else COMPILED):
            print(json.dumps(facts), file=file, flush=True)


def _several(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]
