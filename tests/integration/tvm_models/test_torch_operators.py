"""Operators of PyTorch in programs of one line, against PyTorch's own answer."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.importing.torch import files
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
from torch import nn
from torch.nn import functional

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
Body = Callable[..., Any]
ROWS, IMAGE = (3, 8), (1, 4, 7, 9)


class Lines(nn.Module):
    """A program of a function's operators."""

    def __init__(self, body: Body) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Any) -> Any:
        return self.body(x)


def assert_right(module: Any, shape: tuple[int, ...], place: Path, host: TargetSpec) -> None:
    """TVM takes the program itself, not by way of ONNX, and computes what PyTorch does."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    program = torch.export.export(module.eval(), (x,))
    assert files._opened(program, "it").refusal is None
    torch.export.save(program, place / "it.pt2")
    got = build_model(lower(import_model(str(place / "it.pt2")), host), {}).open().run([x.numpy()])
    with torch.no_grad():
        expected = module(x)
    for ours, theirs in zip(got, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-4, atol=1e-5)


def part_of_a_copy(x: Any) -> Any:
    y = x.clone()
    y[:, 1:3] = 0.0
    return y


def part_of_a_sum(x: Any) -> Any:
    y = x * 2
    z = y[:, 2:4]
    z += 1
    return y, z


def row_by_row(x: Any) -> Any:
    y = torch.zeros(3, 8)
    for number in range(3):
        y[number] = x[number] * number
    return y


def through_a_view(x: Any) -> Any:
    y = x + 1
    y.view(8, 3)[0] = 5
    return y


def twice_on_a_row(x: Any) -> Any:
    y = x.clone()
    row = y[1]
    row.mul_(3)
    row.add_(y[0])
    return y


def all_of_it(x: Any) -> Any:
    y = x.clone()
    y.fill_(3.0)
    return y


def where_positive(x: Any) -> Any:
    y = x.clone()
    y[x > 0] = 0.0
    return y


def columns(x: Any) -> Any:
    y = x.clone()
    y[:, torch.tensor([2, -1])] = x[:, :2]
    return y


@pytest.mark.parametrize(
    "body",
    [
        columns,
        part_of_a_copy,
        part_of_a_sum,
        row_by_row,
        through_a_view,
        twice_on_a_row,
        all_of_it,
        where_positive,
    ],
    ids=lambda body: body.__name__,
)
def test_what_is_written_in_place_is_seen_by_whoever_reads_it(
    body: Body, tmp_path: Path, host: TargetSpec
) -> None:
    assert_right(Lines(body), ROWS, tmp_path, host)


SHAPES = {1: (1, 4, 7), 2: IMAGE, 3: (1, 2, 3, 5, 4)}
MODES = {1: ("nearest", "linear"), 2: ("nearest", "nearest-exact", "bilinear", "bicubic"), 3: ("trilinear",)}
SIZES = ({"scale_factor": 2}, {"scale_factor": 0.6}, {"size": (5, 11, 3)}, {"align_corners": True})
CHANGES = [
    (axes, mode, sizes)
    for axes in MODES
    for mode in MODES[axes]
    for sizes in SIZES
    if "nearest" not in mode or "align_corners" not in sizes
]


@pytest.mark.parametrize(("axes", "mode", "sizes"), CHANGES, ids=str)
def test_images_change_their_size_as_in_pytorch(
    axes: int, mode: str, sizes: dict[str, Any], tmp_path: Path, host: TargetSpec
) -> None:
    size = None if "scale_factor" in sizes else (5, 11, 3)[:axes]
    options = {**sizes, "mode": mode, "size": size}
    assert_right(Lines(lambda x: functional.interpolate(x, **options)), SHAPES[axes], tmp_path, host)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_are_smoothed_before_they_shrink(mode: str, tmp_path: Path, host: TargetSpec) -> None:
    body = lambda x: functional.interpolate(x, size=(3, 4), mode=mode, antialias=True)  # noqa: E731
    assert_right(Lines(body), IMAGE, tmp_path, host)


@pytest.mark.parametrize(
    "norm",
    [
        nn.GroupNorm(2, 4, affine=False),
        nn.InstanceNorm2d(4),
        nn.InstanceNorm2d(4, affine=True),
        nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
        nn.RMSNorm(9),
        nn.RMSNorm(9, elementwise_affine=False),
        Lines(lambda x: functional.group_norm(x, 2, torch.arange(4.0))),
    ],
    ids=lambda norm: type(norm).__name__,
)
def test_norms_need_no_scale_and_no_shift(norm: Any, tmp_path: Path, host: TargetSpec) -> None:
    assert_right(norm, IMAGE, tmp_path, host)


SINGLE: dict[str, Body] = {
    "selu": functional.selu,
    "celu": lambda x: functional.celu(x, 1.5),
    "elu": lambda x: functional.elu(x, 0.7),
    "amax": lambda x: torch.amax(x, dim=1),
    "amin of all": torch.amin,
    "logsumexp": lambda x: torch.logsumexp(x, 1),
    "prod": lambda x: torch.prod(x, 1),
    "std and mean": lambda x: torch.std_mean(x, 1),
    "variance without correction": lambda x: torch.var_mean(x, 0, correction=0, keepdim=True),
    "exp2": torch.exp2,
    "erfc": torch.erfc,
    "hypot": lambda x: torch.hypot(x, x + 1),
    "fmax": lambda x: torch.fmax(x.log(), x),
    "fmin": lambda x: torch.fmin(x, x.log()),
    "logaddexp": lambda x: torch.logaddexp(x, x * 2),
    "isfinite": lambda x: torch.isfinite(x.log()),
    "count": lambda x: torch.count_nonzero(x > 0, 1),
    "windows": lambda x: x.unfold(1, 3, 2),
    "scatter to the greatest": lambda x: x.scatter_reduce(
        1, torch.tensor([[0, 2, 1], [1, 0, 2]]), torch.ones(2, 3), "amax"
    ),
    "rows put": lambda x: torch.index_put(x, (torch.tensor([0, -1]),), torch.ones(8)),
    "rows added": lambda x: x.index_add(0, torch.tensor([0, 0]), torch.ones(2, 8)),
    "rows copied": lambda x: x.index_copy(0, torch.tensor([2, 0]), torch.ones(2, 8)),
    "truths multiplied": lambda x: (x > 0) * (x < 1),
}


@pytest.mark.parametrize("name", SINGLE)
def test_an_operator_computes_what_pytorch_does(name: str, tmp_path: Path, host: TargetSpec) -> None:
    assert_right(Lines(SINGLE[name]), ROWS, tmp_path, host)


def test_whole_numbers_are_smoothed_by_nobody() -> None:
    body = lambda x: functional.interpolate(x, size=(3, 4), mode="bilinear", antialias=True)  # noqa: E731
    program = torch.export.export(Lines(body), (torch.zeros(IMAGE, dtype=torch.uint8),))
    assert "images of uint8 are resized to the nearest pixel only" in str(
        files._opened(program, "it").refusal
    )


@pytest.mark.parametrize("size", [(3, 4), (2, 3), (13, 5)], ids=str)
@pytest.mark.parametrize("pool", [functional.adaptive_max_pool2d, functional.adaptive_avg_pool2d])
def test_adaptive_windows_of_different_sizes_are_those_of_pytorch(
    pool: Any, size: tuple[int, int], tmp_path: Path, host: TargetSpec
) -> None:
    assert_right(Lines(lambda x: pool(x, size)), IMAGE, tmp_path, host)


def test_a_pool_whose_places_are_asked_for_is_refused(tmp_path: Path) -> None:
    body = lambda x: functional.max_pool2d(x, 2, return_indices=True)  # noqa: E731
    program = torch.export.export(Lines(body), (torch.randn(IMAGE),))
    assert "where the maxima of max_pool2d_with_indices are is not imported" in str(
        files._opened(program, "it").refusal
    )
