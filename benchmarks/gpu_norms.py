"""Whether a layer norm belongs into the product before it: one kernel against two, on a GPU.

    python benchmarks/gpu_norms.py [--processes 8] [--out FILE.json]

Transformers add a product to a residual and normalise the sum. One kernel saves a launch and a trip to
memory, but each of its blocks has to hold whole rows, so there are few of them. Both ways are Triton kernels
in float16, the best of the configurations that build, timed in CUDA graphs. Needs PyTorch and Triton.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from triton.runtime.errors import OutOfResources

RESULTS = Path(__file__).parent / "results" / "gpu_norms.json"
PROBLEMS = (
    *((256, 512, 512), (256, 512, 2048), (197, 384, 384), (197, 384, 1536)),
    *((128, 768, 768), (128, 768, 3072), (3152, 384, 1536), (2048, 768, 3072)),
)
"""Rows, width and depth: networks of benchmarks/gpu_models.py with batch 1, and two with batch 16."""
EPSILON, WRONG = 1e-5, 0.02


@triton.jit
def product(
    x, w, bias, residual, total, out, gamma, beta, ROWS: tl.constexpr, WIDTH: tl.constexpr,
    DEPTH: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
    NORM: tl.constexpr, EPS: tl.constexpr,
):  # fmt: skip
    """x · w + bias + residual, and its norm where a block has whole rows."""
    rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    columns = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    in_rows, in_columns = rows < ROWS, columns < WIDTH
    sums = tl.zeros((TILE_M, TILE_N), tl.float32)
    for begin in range(0, DEPTH, TILE_K):
        deep = begin + tl.arange(0, TILE_K)
        left = tl.load(x + rows[:, None] * DEPTH + deep[None, :], in_rows[:, None], 0.0)
        right = tl.load(w + deep[:, None] * WIDTH + columns[None, :], in_columns[None, :], 0.0)
        sums = tl.dot(left, right, sums)
    inside = in_rows[:, None] & in_columns[None, :]
    place = rows[:, None] * WIDTH + columns[None, :]
    sums += tl.load(bias + columns, in_columns, 0.0)[None, :].to(tl.float32)
    sums += tl.load(residual + place, inside, 0.0).to(tl.float32)
    tl.store(total + place, sums.to(tl.float16), inside)
    if NORM:
        mean = tl.sum(sums, 1) / WIDTH
        away = tl.where(in_columns[None, :], sums - mean[:, None], 0.0)
        scale = tl.rsqrt(tl.sum(away * away, 1) / WIDTH + EPS)
        normed = away * scale[:, None] * tl.load(gamma + columns, in_columns, 0.0)[None, :].to(tl.float32)
        normed += tl.load(beta + columns, in_columns, 0.0)[None, :].to(tl.float32)
        tl.store(out + place, normed.to(tl.float16), inside)


@triton.jit
def norm(
    total, out, gamma, beta, ROWS: tl.constexpr, WIDTH: tl.constexpr, TILE_M: tl.constexpr,
    PADDED: tl.constexpr, EPS: tl.constexpr,
):  # fmt: skip
    """The norm of each row."""
    rows, columns = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M), tl.arange(0, PADDED)
    inside = (rows < ROWS)[:, None] & (columns < WIDTH)[None, :]
    place = rows[:, None] * WIDTH + columns[None, :]
    x = tl.load(total + place, inside, 0.0).to(tl.float32)
    away = tl.where(inside, x - (tl.sum(x, 1) / WIDTH)[:, None], 0.0)
    normed = away * tl.rsqrt(tl.sum(away * away, 1) / WIDTH + EPS)[:, None]
    normed *= tl.load(gamma + columns, columns < WIDTH, 0.0)[None, :].to(tl.float32)
    normed += tl.load(beta + columns, columns < WIDTH, 0.0)[None, :].to(tl.float32)
    tl.store(out + place, normed.to(tl.float16), inside)


@dataclass(frozen=True, slots=True)
class Problem:
    """Tensors of one problem."""

    rows: int
    width: int
    depth: int
    tensors: Mapping[str, Any]

    @classmethod
    def drawn(cls, rows: int, width: int, depth: int, device: str = "cuda") -> "Problem":
        torch.manual_seed(0)
        half = partial(torch.randn, device=device, dtype=torch.float16)
        tensors = {
            "x": half(rows, depth), "w": half(depth, width) * depth**-0.5, "bias": half(width),
            "residual": half(rows, width), "total": torch.zeros_like(half(rows, width)),
            "out": torch.zeros_like(half(rows, width)), "gamma": half(width), "beta": half(width),
        }  # fmt: skip
        return cls(rows, width, depth, tensors)

    @property
    def padded(self) -> int:
        return int(triton.next_power_of_2(self.width))

    def right(self) -> Any:
        t = {name: one.double() for name, one in self.tensors.items()}
        total = t["x"] @ t["w"] + t["bias"] + t["residual"]
        return torch.nn.functional.layer_norm(total, (self.width,), t["gamma"], t["beta"], EPSILON)

    def launch_product(self, tiles: Mapping[str, int], *, whole: bool) -> None:
        tile_n = self.padded if whole else tiles["tile_n"]
        grid = (triton.cdiv(self.rows, tiles["tile_m"]), triton.cdiv(self.width, tile_n))
        product[grid](
            *self.tensors.values(), self.rows, self.width, self.depth, tiles["tile_m"], tile_n,
            tiles["tile_k"], whole, EPSILON, num_warps=tiles["warps"], num_stages=tiles["stages"],
        )  # fmt: skip

    def launch_norm(self, tiles: Mapping[str, int]) -> None:
        given = [self.tensors[name] for name in ("total", "out", "gamma", "beta")]
        norm[(triton.cdiv(self.rows, tiles["tile_m"]),)](
            *given, self.rows, self.width, tiles["tile_m"], self.padded, EPSILON, num_warps=tiles["warps"]
        )


def configurations(**choices: tuple[int, ...]) -> Iterator[dict[str, int]]:
    for values in itertools.product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


WHOLE = list(configurations(tile_m=(16, 32, 64), tile_k=(32, 64), warps=(4, 8), stages=(2, 3, 4)))
TILED = list(
    configurations(tile_m=(16, 32, 64), tile_n=(32, 64, 128), tile_k=(64, 128), warps=(4,), stages=(3, 4))
)
NORMS = list(configurations(tile_m=(1, 2, 4), warps=(1, 4)))


def best(launch: Callable[[Mapping[str, int]], None], choices: list[dict[str, int]]) -> tuple[float, Any]:
    """The least microseconds of a kernel, and with what; configurations that don't fit are left out."""
    from gpu_templates import timed

    found = []
    for tiles in choices:
        try:
            launch(tiles)
            found.append((timed([partial(launch, tiles)], goal_s=0.002), tiles))
        except (OutOfResources, RuntimeError):
            continue
    return min(found, key=lambda one: one[0])


def measured(problem: Problem) -> dict[str, Any]:
    """Microseconds of both ways; raises AssertionError if one of them is wrong."""
    from gpu_templates import timed

    right = problem.right()
    one_us, one = best(partial(problem.launch_product, whole=True), WHOLE)
    problem.launch_product(one, whole=True)
    check(problem, right)
    _, tiled = best(partial(problem.launch_product, whole=False), TILED)
    problem.tensors["out"].zero_()
    problem.launch_product(tiled, whole=False)
    norm_us, rows = best(problem.launch_norm, NORMS)
    check(problem, right)

    def two() -> None:
        problem.launch_product(tiled, whole=False)
        problem.launch_norm(rows)

    sizes = {"rows": problem.rows, "width": problem.width, "depth": problem.depth}
    return {
        **sizes,
        "one_us": one_us,
        "two_us": timed([two]),
        "norm_us": norm_us,
        "tiles": [one, tiled, rows],
    }


def compiled(sizes: tuple[int, int, int], whole: bool, tiles: Mapping[str, int]) -> None:
    """Leave a kernel in Triton's cache, where this process is one of many."""
    with suppress(OutOfResources, RuntimeError):
        Problem.drawn(*sizes).launch_product(tiles, whole=whole)


def check(problem: Problem, right: Any) -> None:
    off = (problem.tensors["out"].double() - right).abs().max() / right.abs().max()
    assert off < WRONG, f"off by {off:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--processes", type=int, default=8, help="that compile side by side")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("gpu_norms.py: PyTorch finds no GPU here")
    rows = []
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
        every = [(True, tiles) for tiles in WHOLE] + [(False, tiles) for tiles in TILED]
        jobs = [pool.submit(compiled, sizes, *one) for sizes in PROBLEMS for one in every]
        for job in jobs:
            job.result()
    for sizes in PROBLEMS:
        row = measured(Problem.drawn(*sizes))
        rows.append(row)
        print(f"{sizes}: one {row['one_us']:.2f} us, two {row['two_us']:.2f}", flush=True)
        state = {
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "triton": triton.__version__,
        }
        options.out.write_text(json.dumps({**state, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
