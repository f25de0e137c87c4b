"""Graphs of GraphNet as PyTorch modules: weights are buffers, drawn by the recorded statistics.

A sample is a folder with `model.py`, `weight_meta.py` and `input_meta.py`, in a clone of
https://github.com/PaddlePaddle/GraphNet (MIT), below `samples/`.
"""

import inspect
import math
import random
import re
from pathlib import Path
from typing import Any

import torch

_WEIGHT = re.compile(r"_parameters_|_buffers_|^L_self_|^L_fn_")
_GPU = re.compile(r"""device\(type=['"]cuda['"](, index=\d+)?\)|(?P<quote>['"])cuda(:\d+)?(?P=quote)""")


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


def opened(sample: Path, seed: int = 0) -> tuple[GraphNetModel, tuple[Any, ...]]:
    """The model of a sample on the CPU, and inputs for it."""
    text = _GPU.sub("'cpu'", (sample / "model.py").read_text())
    space: dict[str, Any] = {"torch": torch, "device": torch.device, "inf": math.inf, "nan": math.nan}
    exec(compile(text, str(sample / "model.py"), "exec"), space)
    generator = torch.Generator().manual_seed(seed)
    metas = [one for name in ("weight_meta.py", "input_meta.py") for one in _described(sample / name)]
    values = {one.name: _value(one, generator) for one in metas}
    for name in (one.name for one in metas if not one.shape and f"{one.name}.item()".lower() in text.lower()):
        values[name] = Number(values[name])  # a tensor's own item() would be a number that export can't know
    model = GraphNetModel(space["GraphModule"](), values).eval()
    return model, tuple(values[name] for name in model.inputs)


def _described(path: Path) -> list[Any]:
    space: dict[str, Any] = {"inf": math.inf, "nan": math.nan}
    exec(path.read_text(), space)
    return [one for one in space.values() if isinstance(one, type) and hasattr(one, "shape")]


def _value(meta: Any, generator: Any) -> Any:
    kind, data = getattr(torch, meta.dtype.removeprefix("torch.")), getattr(meta, "data", None)
    if data is not None:
        scalar = data[0] if isinstance(data, (list, tuple)) else data
        return torch.tensor(data, dtype=kind).reshape(meta.shape) if meta.shape else scalar
    if kind.is_floating_point:
        drawn = torch.randn(meta.shape, generator=generator) * (meta.std or 0.0) + (meta.mean or 0.0)
        return (drawn.abs() + 0.1 if "running_var" in meta.name else drawn).to(kind)
    if kind is torch.bool:
        return torch.ones(meta.shape, dtype=torch.bool)
    low, high = int(getattr(meta, "min_val", 0) or 0), int(getattr(meta, "max_val", 10) or 10)
    return torch.randint(low, max(low + 1, high), meta.shape, generator=generator).to(kind)
