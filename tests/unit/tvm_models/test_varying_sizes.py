"""A dimension that varies: sizes are chosen by what programs take, and run in programs of others."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuneloom.tuners.tvm.models.sizes.choosing import (
    Dimension,
    choose_sizes,
    interpolated,
    most_programs,
    size_table,
)
from tuneloom.tuners.tvm.runner.asked import SizeLog
from tuneloom.tuners.tvm.runner.refused import Refused
from tuneloom.tuners.tvm.runner.sizes import Sizes

PADS = Dimension(low=1, high=16, pads=True, splits=False)
SPLITS = Dimension(low=1, high=16, pads=True, splits=True)


def linear(size: int) -> float:
    return 0.1 + float(size)


def test_a_size_that_may_only_be_padded_runs_in_the_fastest_program_that_holds_it() -> None:
    table = size_table(PADS, {4: 4.0, 8: 8.6, 16: 8.5})
    assert [table[size - 1] for size in (1, 4, 5, 8, 9)] == [(4,), (4,), (16,), (8,), (16,)]


def test_a_size_that_may_be_divided_runs_in_the_fastest_programs_together() -> None:
    table = size_table(SPLITS, {1: 1.0, 4: 3.0, 16: 13.0})
    found = [sorted(table[size - 1]) for size in (1, 2, 4, 5, 16)]
    assert found == [[1], [1, 1], [4], [1, 4], [4, 4, 4, 4]]
    assert all(sum(runs) >= size for size, runs in enumerate(table, 1))


def test_what_can_neither_be_padded_nor_divided_has_a_program_for_each_size() -> None:
    alone = Dimension(low=2, high=5, pads=False, splits=False)
    chosen = choose_sizes(alone, linear, 2, {})
    assert chosen == (5, 4, 3, 2)
    assert size_table(alone, dict.fromkeys(chosen, 1.0)) == [(2,), (3,), (4,), (5,)]


def test_the_budget_limits_how_many_sizes_are_chosen() -> None:
    chosen = choose_sizes(Dimension(low=1, high=512, pads=True, splits=False), linear, 5, {})
    assert len(chosen) == 5 and chosen[0] == 512


def test_trials_and_memory_limit_how_many_programs_are_made() -> None:
    assert most_programs(trials=150, kernels=10, room=99) == 15
    assert most_programs(trials=150, kernels=10, room=3) == 3
    assert most_programs(trials=10_000, kernels=10, room=999) == 32
    assert most_programs(trials=4, kernels=10, room=999) == 8


def test_more_sizes_are_chosen_where_times_differ_more() -> None:
    dimension = Dimension(low=1, high=512, pads=True, splits=False)
    flat = choose_sizes(dimension, lambda size: 100 + size / 10_000, 32, {})
    steep = choose_sizes(dimension, linear, 32, {})
    assert len(flat) == 1 < len(steep)


def test_fewer_sizes_suffice_where_runs_may_be_divided() -> None:
    divided = choose_sizes(Dimension(low=1, high=512, pads=True, splits=True), linear, 32, {})
    padded = choose_sizes(Dimension(low=1, high=512, pads=True, splits=False), linear, 32, {})
    assert len(divided) < len(padded)


def test_sizes_between_programs_are_hardly_slower_if_the_budget_allows() -> None:
    dimension = Dimension(low=1, high=512, pads=True, splits=False)
    chosen = choose_sizes(dimension, linear, 32, {})
    table = size_table(dimension, {size: linear(size) for size in chosen})
    taken = sum(linear(size) for runs in table for size in runs)
    assert taken < 1.1 * sum(map(linear, range(1, 513)))


def test_a_size_that_is_asked_for_often_gets_its_own_program() -> None:
    dimension = Dimension(low=1, high=512, pads=True, splits=False)
    assert 77 not in choose_sizes(dimension, linear, 3, {})
    assert 77 in choose_sizes(dimension, linear, 3, {77: 1000, 500: 3})


def test_no_program_is_made_below_the_least_size_that_shares_weights() -> None:
    assert min(choose_sizes(PADS, linear, 8, {1: 100}, least=2)) == 2


def test_times_between_probes_are_interpolated() -> None:
    assert interpolated({1: 1.0, 3: 5.0})(2) == pytest.approx(3.0)


def manifest(**sizes: Any) -> dict[str, Any]:
    """A model that doubles `x`, whose first dimension varies, and adds `w`, whose shape is fixed."""
    return {
        "inputs": [
            {"name": "x", "shape": [4, 2], "dtype": "float32"},
            {"name": "w", "shape": [2], "dtype": "float32"},
        ],
        "outputs": [{"name": "y", "shape": [4, 2], "dtype": "float32"}],
        "sizes": {
            "low": 1,
            "high": 5,
            "inputs": {"x": [0]},
            "outputs": {"y": [[0, 1]]},
            "programs": [4, 1],
            "table": [[1], [0], [0], [0], [0, 1]],
            **sizes,
        },
    }


def doubled(seen: list[tuple[int, int]]) -> Any:
    def run(number: int, values: list[Any]) -> list[Any]:
        seen.append((number, len(values[0])))
        return [2 * values[0] + values[1]]

    return run


@pytest.mark.parametrize(
    ("size", "runs"), [(1, [(1, 1)]), (3, [(0, 4)]), (4, [(0, 4)]), (5, [(0, 4), (1, 1)])]
)
def test_a_size_runs_in_the_programs_of_the_table(size: int, runs: list[tuple[int, int]]) -> None:
    seen: list[tuple[int, int]] = []
    x, w = np.arange(2 * size, dtype="float32").reshape(size, 2), np.ones(2, "float32")
    (y,) = Sizes(manifest()).run([x, w], doubled(seen))
    np.testing.assert_array_equal(y, 2 * x + w)
    assert seen == runs


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((6, 2), "dimension 0 of x must be 1 to 5, got 6"),
        ((0, 2), "dimension 0 of x must be 1 to 5, got 0"),
        ((3, 7), "dimension 1 of x must be 2, got 7"),
        ((3,), "x has 1 dimensions; it must have 2"),
    ],
)
def test_a_shape_out_of_range_is_refused_by_its_dimension(shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(Refused, match=words):
        Sizes(manifest()).run([np.zeros(shape, "float32"), np.ones(2, "float32")], doubled([]))


def test_inputs_that_vary_together_must_agree() -> None:
    both = Sizes(manifest(inputs={"x": [0], "w": [0]}))
    with pytest.raises(
        Refused, match="x has 3 in dimension 0 and w has 2 in dimension 0; give them the same"
    ):
        both.run([np.zeros((3, 2), "float32"), np.ones(2, "float32")], doubled([]))


def test_sizes_are_counted_in_the_log_of_the_bundle(tmp_path: Path) -> None:
    sizes, w = Sizes(manifest(), tmp_path), np.ones(2, "float32")
    for size in (3, 3, 5, 3):
        sizes.run([np.zeros((size, 2), "float32"), w], doubled([]))
    assert SizeLog(tmp_path).read() == {3: 3, 5: 1}
    again = Sizes(manifest(), tmp_path)
    again.run([np.zeros((5, 2), "float32"), w], doubled([]))
    assert SizeLog(tmp_path).read() == {3: 3, 5: 2}


def test_a_log_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    (tmp_path / "asked.log").write_text(json.dumps({"3": 2}) + '\n{"5": 1')
    assert SizeLog(tmp_path).read() == {3: 2}


def test_a_bundle_that_cannot_be_written_to_still_runs(tmp_path: Path) -> None:
    sizes = Sizes(manifest(), tmp_path / "gone")
    assert sizes.run([np.zeros((3, 2), "float32"), np.ones(2, "float32")], doubled([]))
