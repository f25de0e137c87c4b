"""One bundle for a range of sizes against a bundle tuned for each size alone.

python benchmarks/varying_shapes.py --trials 200 --samples 20 --out benchmarks/results/varying_shapes.json

A BERT with lengths from 1 to 512 and a convolutional network with batches from 1 to 64 are tuned once for
all sizes, with four times the trials that each sampled size gets alone, in a store of its own. Then both
bundles run the sampled sizes in turn, from NumPy arrays to NumPy arrays; the time of a size is the best of
its runs. `--small` shrinks the networks for a machine with little time. Needs PyTorch.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import from_nothing  # noqa: F401
from tuneloom.tuners.tvm.bundles.loading import Bundle, load_bundle

TIMES = 4
"""How many times the trials of one size all sizes together get."""
_TIMING_S = 1.0


class Layer(nn.Module):  # type: ignore[misc]
    """A layer of a transformer's encoder, as in BERT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Any, mask: Any) -> Any:
        batch, length, width = x.shape
        form = (batch, length, self.heads, width // self.heads)
        query, key, value = (
            one(x).reshape(form).transpose(1, 2) for one in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) / math.sqrt(width // self.heads) + mask
        mixed = (torch.softmax(scores, -1) @ value).transpose(1, 2).reshape(x.shape)
        x = self.norm_1(x + self.out(mixed))
        return self.norm_2(x + self.narrow(nn.functional.gelu(self.wide(x))))


class Bert(nn.Module):  # type: ignore[misc]
    """BERT's encoder over tokens and their mask."""

    def __init__(self, layers: int, width: int, most: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(1000, width), nn.Embedding(most, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(Layer(width, width // 64) for _ in range(layers))

    def forward(self, ids: Any, mask: Any) -> Any:
        x = self.norm(self.tokens(ids) + self.places(torch.arange(ids.shape[1]))[None])
        hidden = (1.0 - mask[:, None, None, :].float()) * -10000.0
        for layer in self.layers:
            x = layer(x, hidden)
        return x


class Block(nn.Module):  # type: ignore[misc]
    """A residual block of two convolutions."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1)
        self.second = nn.Conv2d(after, after, 3, 1, 1)
        self.beside = nn.Conv2d(before, after, 1, stride)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.beside(x) + self.second(torch.relu(self.first(x))))


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network with a dimension that varies: how it is exported, named and fed."""

    name: str
    high: int
    shape: str
    """Its `--shape`, with {} in the place of the size."""
    module: nn.Module
    inputs: Callable[[int], list[np.ndarray[Any, Any]]]

    def write(self, folder: Path) -> Path:
        """Export it to a file."""
        torch.manual_seed(0)
        example = tuple(torch.from_numpy(value) for value in self.inputs(8))
        axis = self.shape.split("=")[1].split(",").index("{}")
        dim = torch.export.Dim("size", min=1, max=self.high)
        dims = tuple({axis: dim} for _ in example)
        path = folder / f"{self.name}.pt2"
        torch.export.save(torch.export.export(self.module.eval(), example, dynamic_shapes=dims), path)
        return path


def networks(small: bool) -> list[Network]:
    """The networks, or small relatives of them."""
    layers, width, length = (2, 256, 512) if small else (12, 768, 512)
    channels, pixels, batches = (16, 32, 64) if small else (64, 112, 64)
    blocks = [Block(channels << n, channels << (n + 1), 2) for n in range(3)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * channels, 1000)]
    images = nn.Sequential(nn.Conv2d(3, channels, 3, 1, 1), nn.ReLU(), *blocks, *head)

    def tokens(size: int) -> list[np.ndarray[Any, Any]]:
        return [np.random.default_rng(size).integers(0, 1000, (1, size)), np.ones((1, size), np.int64)]

    def pictures(size: int) -> list[np.ndarray[Any, Any]]:
        return [np.random.default_rng(size).normal(size=(size, 3, pixels, pixels)).astype("float32")]

    return [
        Network(
            name="bert", high=length, shape="ids=1,{}", module=Bert(layers, width, length), inputs=tokens
        ),
        Network(
            name="convolutions",
            high=batches,
            shape=f"input={{}},3,{pixels},{pixels}",
            module=images,
            inputs=pictures,
        ),
    ]


def tune(model: Path, shape: str, trials: int, place: Path) -> float:
    """Tune in a store of its own; returns the seconds that took."""
    words = ["tune", str(model), "--shape", shape, "--trials", str(trials), "--out", str(place), "--quiet"]
    started = time.monotonic()
    home = {"TUNELOOM_HOME": str(place.with_suffix(".home"))}
    done = subprocess.run(
        [sys.executable, "-m", "tuneloom", *words, "--only-tvm"],
        env=os.environ | home,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{shape}: {done.stderr.strip()}")
    print(f"{place.name}: tuned in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return time.monotonic() - started


def in_turn(one: Bundle, other: Bundle, values: Sequence[Any]) -> tuple[float, float]:
    """What the best run of each takes, in seconds, while they take turns."""
    best, ends = [math.inf, math.inf], time.perf_counter() + _TIMING_S
    rounds = 0
    while time.perf_counter() < ends or rounds < 5:
        for place, bundle in enumerate((one, other)):
            started = time.perf_counter()
            bundle.run(*values)
            best[place] = min(best[place], time.perf_counter() - started)
        rounds += 1
    return best[0], best[1]


def measured(network: Network, folder: Path, trials: int, samples: int, at_once: int) -> dict[str, Any]:
    """Tune a network for all sizes, and for sampled ones alone, and compare."""
    model = network.write(folder)
    sizes = sorted(random.Random(1).sample(range(1, network.high + 1), min(samples, network.high)))
    places = {size: folder / f"{network.name}-{size}" for size in sizes}
    whole = folder / f"{network.name}-all"
    asked = [(network.shape.format(f"1..{network.high}"), TIMES * trials, whole)]
    asked += [(network.shape.format(size), trials, place) for size, place in places.items()]
    with ThreadPoolExecutor(at_once) as pool:
        seconds = list(pool.map(lambda one: tune(model, *one), asked))
    varying = load_bundle(whole)
    told = varying.manifest["sizes"]
    rows = []
    for size, place in places.items():
        varying_s, alone_s = in_turn(varying, load_bundle(place), network.inputs(size))
        runs = [told["programs"][number] for number in told["table"][size - 1]]
        rows.append({"size": size, "varying_s": varying_s, "alone_s": alone_s, "programs": runs})
    return {
        "network": network.name,
        "high": network.high,
        "trials": trials,
        "programs": told["programs"],
        "pads": told["pads"],
        "splits": told["splits"],
        "tuning_s": seconds,
        "rows": rows,
        **summary(rows),
    }


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """How many times longer the bundle for all sizes takes: on average of sizes, and for one run of each."""
    ratios = [row["varying_s"] / row["alone_s"] for row in rows]
    total = sum(row["varying_s"] for row in rows) / sum(row["alone_s"] for row in rows)
    return {"geometric_mean": math.prod(ratios) ** (1 / len(ratios)), "total": total}


def show(found: dict[str, Any]) -> None:
    """Print a table for people."""
    print(f"\n{found['network']}, 1..{found['high']}, {found['trials']} trials a size, programs for", end=" ")
    print(", ".join(map(str, found["programs"])))
    print("| size | all sizes, ms | alone, ms | ratio | runs in |\n| --: | --: | --: | --: | --- |")
    for row in found["rows"]:
        times = f"{row['varying_s'] * 1e3:.3f} | {row['alone_s'] * 1e3:.3f}"
        print(f"| {row['size']} | {times} | {row['varying_s'] / row['alone_s']:.2f} | {row['programs']} |")
    print(f"geometric mean {found['geometric_mean']:.3f}, one run of each size {found['total']:.3f}")


def main() -> None:
    """Measure both networks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=200, help="trials for one size")
    parser.add_argument("--samples", type=int, default=20, help="sizes to compare")
    parser.add_argument("--at-once", type=int, default=1, help="jobs that run at the same time")
    parser.add_argument("--small", action="store_true", help="smaller networks")
    parser.add_argument("--only", help="name of one network")
    parser.add_argument("--out", type=Path, help="file for the results")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="tuneloom-varying-") as folder:
        for network in networks(options.small):
            if options.only in (None, network.name):
                given = (options.trials, options.samples, options.at_once)
                results.append(measured(network, Path(folder), *given))
                show(results[-1])
    if options.out is not None:
        options.out.write_text(json.dumps({"small": options.small, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
