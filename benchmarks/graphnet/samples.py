"""Graphs of GraphNet as PyTorch modules: weights are buffers, drawn by the recorded statistics.

A sample is a folder with `model.py`, `weight_meta.py` and `input_meta.py`, in a clone of
https://github.com/PaddlePaddle/GraphNet (MIT), below `samples/`.
"""

import argparse
import inspect
import math
import random
import re
from pathlib import Path
from typing import Any

import torch

_WEIGHT = re.compile(r"_parameters_|_buffers_|^L_self_|^L_fn_")
_DEVICE = re.compile(
    r"""device\(type=['"](cuda|cpu)['"](, index=\d+)?\)|(?P<quote>['"])(cuda|cpu)(:\d+)?(?P=quote)"""
)


def asking(purpose: str | None) -> argparse.ArgumentParser:
    """A parser for which graphs to take."""
    parser = argparse.ArgumentParser(description=purpose, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("samples", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--most-weights", type=int, default=40_000_000)
    return parser


def picked(options: argparse.Namespace) -> list[Path]:
    """The graphs that were named, or the samples of all seeds, each graph once."""
    named = [one for one in options.samples if (one / "model.py").is_file()]
    return named or list(
        dict.fromkeys(
            path
            for seed in options.seeds
            for path in chosen(options.samples[0], seed, options.count, options.most_weights)
        )
    )


def title(sample: Path) -> str:
    """What a graph is called in results."""
    return f"{sample.parent.name}/{sample.name}"


def chosen(root: Path, seed: int, count: int, most_weights: int) -> list[Path]:
    """A seeded sample of the graphs below a folder that have no more weights than allowed."""
    every = sorted(
        path.parent for path in root.rglob("model.py") if (path.parent / "weight_meta.py").is_file()
    )
    random.Random(seed).shuffle(every)
    found = (path for path in every if weights_in(path) <= most_weights)
    return [path for path, _ in zip(found, range(count), strict=False)]


def weights_in(sample: Path) -> int:
    """How many numbers its weights have."""
    return sum(math.prod(one.shape) for one in _described(sample / "weight_meta.py"))


class Number(float):
    """A number that graphs ask for as if it were in a tensor."""

    def item(self) -> float:
        return float(self)


class GraphNetModel(torch.nn.Module):
    """The graph of a sample as a function of its inputs alone."""

    def __init__(self, graph: Any, values: dict[str, Any]) -> None:
        super().__init__()
        self.captured, self.names = graph, list(inspect.signature(graph.forward).parameters)
        self.numbers = {name: value for name, value in values.items() if not isinstance(value, torch.Tensor)}
        self.inputs = [name for name in self.names if name not in self.numbers and not _WEIGHT.search(name)]
        for name in self.names:
            if name not in self.numbers and name not in self.inputs:
                self.register_buffer(name, values[name])

    def forward(self, *values: Any) -> tuple[Any, ...]:
        given = {**self.numbers, **dict(zip(self.inputs, values, strict=True))}
        found = self.captured(*(given[name] if name in given else getattr(self, name) for name in self.names))
        every = found if isinstance(found, (tuple, list)) else (found,)
        return tuple(one for one in every if isinstance(one, torch.Tensor))


def opened(
    sample: Path, seed: int = 0, device: str = "cpu", dtype: str = "float32"
) -> tuple[GraphNetModel, tuple[Any, ...]]:
    """The model of a sample on a device, and inputs for it; `dtype` is that of all real numbers."""
    text = _DEVICE.sub(f"'{device}'", (sample / "model.py").read_text())
    space: dict[str, Any] = {"torch": torch, "device": torch.device, "inf": math.inf, "nan": math.nan}
    exec(compile(text, str(sample / "model.py"), "exec"), space)
    generator = torch.Generator().manual_seed(seed)
    metas = [one for name in ("weight_meta.py", "input_meta.py") for one in _described(sample / name)]
    values = {one.name: _placed(_value(one, generator), device, dtype) for one in metas}
    for name in (one.name for one in metas if not one.shape and _is_asked_for(one.name, text)):
        values[name] = Number(values[name])  # a tensor's own item() would be a number that export can't know
    model = GraphNetModel(space["GraphModule"](), values).eval()
    return model, tuple(values[name] for name in model.inputs)


def _is_asked_for(name: str, text: str) -> bool:
    """Whether a graph asks a tensor for its number, by its name or by that of a variable it is given to."""
    variables = re.findall(rf"(\w+) = {name}\b", text)
    return any(f"{one}.item()".lower() in text.lower() for one in (name, *variables))


def _placed(value: Any, device: str, dtype: str) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    single = value.dtype is torch.float32
    return value.to(device, getattr(torch, dtype)) if single else value.to(device)


def _described(path: Path) -> list[Any]:
    space: dict[str, Any] = {"inf": math.inf, "nan": math.nan}
    exec(path.read_text(), space)
    return [one for one in space.values() if isinstance(one, type) and hasattr(one, "shape")]


def _value(meta: Any, generator: Any) -> Any:
    """As GraphNet's `replay_tensor` draws it: near its mean, within its bounds."""
    kind, data = getattr(torch, meta.dtype.removeprefix("torch.")), getattr(meta, "data", None)
    low, high = getattr(meta, "min_val", None), getattr(meta, "max_val", None)
    if data is not None:
        plain = not meta.shape and (meta.name.endswith("_eps") or not _WEIGHT.search(meta.name))
        scalar = data[0] if isinstance(data, (list, tuple)) else data
        return scalar if plain else torch.tensor(data, dtype=kind).reshape(meta.shape)
    if kind is torch.bool:
        return torch.rand(meta.shape, generator=generator) > 0.5
    if kind in (torch.int32, torch.int64) and low is not None and high is not None:
        return torch.randint(int(low), int(high) + 1, meta.shape, generator=generator).to(kind)
    if not meta.shape and meta.name.endswith("_eps"):
        return meta.mean or 1e-3  # three decimals are recorded, and PyTorch takes no 0
    spread = 0.1 if meta.std is None else meta.std
    drawn = torch.randn(meta.shape, generator=generator) * (spread * 0.2) + (meta.mean or 0.0)
    low, high = max(-100.0, -100.0 if low is None else low), min(100.0, 100.0 if high is None else high)
    return drawn.clamp(low, high).to(kind)
