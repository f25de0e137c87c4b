"""One graph in PyTorch, Inductor and Tuneloom, in this process: outputs are compared, calls timed in turn.

On a GPU, calls hold the lock with which Tuneloom measures: other graphs are tuned beside this one.
"""

import argparse
import logging
import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Any

import torch

import tuneloom
from graphnet import samples, scores
from tuneloom.engine.sharing.locks import holding
from tuneloom.gpus import visible_gpus

WARM_UPS = 6
_LEAST, _MOST, _TIMED_S, _TURN_S = 15, 200, 2.0, 1e-3


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Medians of single calls, and at which tolerance outputs agree with PyTorch's."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with torch.no_grad():
        try:
            model, inputs = samples.opened(options.samples[0], device=options.device, dtype=options.dtype)
            with alone(options.device):
                expected = model(*inputs)
        except Exception as error:
            return {"eager": {"error": _line(error)}}
        calls: dict[str, Callable[[], Any]] = {"eager": lambda: model(*inputs)}
        row: dict[str, Any] = {"eager": {}}
        for name, build in _builders(options.device).items():
            began = time.perf_counter()
            try:
                calls[name], told = build(model, inputs, options)
                with alone(options.device):
                    tolerance = scores.least_tolerance(calls[name](), expected)
                row[name] = {"tolerance": tolerance, "compile_s": time.perf_counter() - began, **told}
            except Exception as error:
                calls.pop(name, None)
                row[name] = {"error": _line(error)}
        with alone(options.device):
            for name, seconds in _in_turn(calls).items():
                row[name]["seconds"] = seconds
    return row


@contextmanager
def alone(device: str) -> Iterator[None]:
    """Have the GPU to oneself, once what it was given before is done; a CPU's cores are one's own anyway."""
    names = [f"gpu-{visible_gpus()[0].uuid}"] if device == "cuda" else []
    with holding(names, alone=True, waits=lambda: None):
        yield
        if names:
            torch.cuda.synchronize()


Built = tuple[Callable[[], Any], dict[str, Any]]


def _builders(device: str) -> dict[str, Callable[..., Built]]:
    """All sides but eager PyTorch; only on GPUs has Inductor a mode that spares launches."""
    graphs = {"reduce-overhead": partial(_inductor, mode="reduce-overhead")} if device == "cuda" else {}
    return {"inductor": _inductor, **graphs, "tuneloom": _tuneloom}


def _inductor(
    model: Any, inputs: Sequence[Any], options: argparse.Namespace, mode: str | None = None
) -> Built:
    fast = torch.compile(model, mode=mode)
    fast(*inputs)  # compiles, for which the GPU is not needed
    with alone(options.device):
        for _ in range(WARM_UPS - 1):
            fast(*inputs)
    return lambda: fast(*inputs), {}


def _tuneloom(model: Any, inputs: Sequence[Any], options: argparse.Namespace) -> Built:
    said, log = LastWords(), logging.getLogger("tuneloom.pytorch")
    log.setLevel(logging.INFO)
    log.addHandler(said)
    fast = tuneloom.compile(model, inputs, mode="wait", trials=options.trials, seconds=options.seconds)
    with alone(options.device):
        for _ in range(WARM_UPS):  # both run side by side until one of them is chosen
            fast(*inputs)
    return lambda: fast(*inputs), {"in_use": fast.in_use, "said": said.words}


class LastWords(logging.Handler):
    """What was last said about a graph."""

    words = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.words = record.getMessage()[:300]


def _in_turn(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The median of each side's turns, in another order every time: what ran before leaves its caches."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    began, names, order = time.perf_counter(), list(calls), random.Random(0)
    while len(times["eager"]) < _LEAST or (
        len(times["eager"]) < _MOST and time.perf_counter() - began < _TIMED_S
    ):
        order.shuffle(names)
        for name in names:
            times[name].append(_turn(calls[name]))
    return {name: median(each) for name, each in times.items()}


def _turn(call: Callable[[], Any]) -> float:
    """The time of a call, the median of several if it is short: one by itself pays for the others' caches."""
    found = [_timed(call)]
    while sum(found) < _TURN_S:
        found.append(_timed(call))
    return median(found)


def _timed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - began


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:200]
