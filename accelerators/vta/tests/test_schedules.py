"""Schedules give right results or fail as values, on either accelerator."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tuneloom.model import Failure, FailureKind, Measurement
from tuneloom.tuners.kernel.search.searches import new_search
from tuneloom.tuners.kernel.search.terms import Terms
from tuneloom.tuners.kernel.space import KnobValue
from tuneloom_vta import DEFAULT, SMALL, Configuration, ScheduleError
from tuneloom_vta.measuring import build, executed, profile
from tuneloom_vta.schedules.knobs import Knobs, space_of
from tuneloom_vta.schedules.program import Program, program_of
from tuneloom_vta.schedules.tiling import Tiling
from tuneloom_vta.schedules.workloads import RESNET18, Convolution, dense
from tuneloom_vta.simulator.device import Fault

TINY = Convolution(name="tiny", height=8, width=8, in_channels=32, out_channels=64, kernel=3, padding=1)
PUBLISHED = {"tile_h": 7, "tile_w": 56, "tile_ci": 1, "tile_co": 2, "oc_nthread": 2, "h_nthread": 1}


def fate(workload: Convolution, knobs: Mapping[str, KnobValue]) -> Measurement | Failure:
    made = build(workload, knobs)
    return profile(workload, made) if isinstance(made, Program) else made


@pytest.fixture(scope="module")
def fates() -> dict[tuple[int, ...], Measurement | Failure]:
    """Everything of a small space."""
    space = space_of(TINY, DEFAULT)
    return {tuple(int(i) for i in p): fate(TINY, space.configuration(p)) for p in space.points()}


def test_the_largest_layer_runs_as_published() -> None:
    assert isinstance(fate(RESNET18[0], PUBLISHED), Measurement)


@st.composite
def convolutions(draw: st.DrawFn) -> Convolution:
    kernel = draw(st.sampled_from([1, 3]))
    return Convolution(
        name="any",
        height=draw(st.integers(1, 9)),
        width=draw(st.integers(1, 9)),
        in_channels=draw(st.sampled_from([16, 32, 64])),
        out_channels=draw(st.sampled_from([16, 48, 64])),
        kernel=kernel,
        padding=kernel // 2,
        stride=draw(st.integers(1, 2)),
        relu=draw(st.booleans()),
        sums=draw(st.booleans()),
    )


@settings(max_examples=80, deadline=None)
@given(workload=convolutions(), configuration=st.sampled_from([DEFAULT, SMALL]), seed=st.integers(0, 2**32))
def test_whatever_builds_is_right_unless_sums_are_read_too_early(
    workload: Convolution, configuration: Configuration, seed: int
) -> None:
    space = space_of(workload, configuration)
    points = space.points()
    made = build(workload, space.configuration(points[seed % len(points)]), configuration)
    assume(isinstance(made, Program))
    assert isinstance(made, Program)
    outcome, _ = executed(workload, made, configuration)
    assert outcome.fault is Fault.NONE
    result = profile(workload, made, configuration)
    assert isinstance(result, Measurement) or (outcome.stale_sums > 0)
    assert isinstance(result, Measurement) or result.kind is FailureKind.WRONG_RESULT


def test_a_small_space_holds_successes_and_several_kinds_of_failure(
    fates: dict[tuple[int, ...], Measurement | Failure],
) -> None:
    kinds = Counter(f.kind if isinstance(f, Failure) else None for f in fates.values())
    assert kinds[FailureKind.BUILD_ERROR] > kinds[None] > 0
    assert kinds[FailureKind.WRONG_RESULT] > 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tile_h": 4, "tile_ci": 2}, "padded input are three dimensions"),
        ({"tile_w": 28}, "results are three dimensions"),
        ({"tile_h": 8, "h_nthread": 2}, "7 tiles of rows can't be dealt to 2 threads"),
        ({"tile_co": 4}, "1 tiles of channels can't be dealt to 2 threads"),
        ({"tile_h": 28}, "do not fit into the 2048 of inp"),
    ],
)
def test_schedules_without_a_program_fail_to_build(changes: dict[str, int], told: str) -> None:
    failure = build(RESNET18[0], {**PUBLISHED, **changes})
    assert isinstance(failure, Failure) and failure.kind is FailureKind.BUILD_ERROR
    assert told in failure.message


def test_a_device_stops_a_program_whose_tiles_do_not_fit() -> None:
    workload = dense("wide", 16 * 1024, 16)
    knobs = Knobs(tile_h=1, tile_w=1, tile_ci=1024, tile_co=1, oc_nthread=1, h_nthread=1)
    small = Configuration(wgt_bytes=128 * 1024)
    program = program_of(Tiling(workload, knobs, small))
    assert executed(workload, program, small)[0].fault is Fault.SCRATCHPAD_OVERFLOW
    assert isinstance(build(workload, asdict(knobs), small), Failure)


def test_a_product_of_vectors_runs() -> None:
    knobs = {"tile_h": 1, "tile_w": 1, "tile_ci": 8, "tile_co": 16, "oc_nthread": 2, "h_nthread": 1}
    assert isinstance(fate(dense("classes", 512, 1024), knobs), Measurement)


def test_virtual_threads_hide_loads_behind_products() -> None:
    def cycles(threads: int) -> int:
        made = build(RESNET18[3], {**PUBLISHED, "tile_w": 28, "oc_nthread": threads})
        assert isinstance(made, Program)
        return executed(RESNET18[3], made, with_data=False)[0].cycles

    assert cycles(2) < cycles(1)


def test_channels_that_are_no_blocks_are_refused() -> None:
    with pytest.raises(ScheduleError, match="3 channels are no multiple of 16"):
        space_of(Convolution(name="first", height=224, width=224, in_channels=3, out_channels=64), DEFAULT)


def test_resnet18_has_ten_spaces_and_nothing_is_left_out_of_them() -> None:
    sizes = [space_of(layer, DEFAULT).size for layer in RESNET18]
    assert sizes == [2304, 1728, 1728, 2304, 1280, 1280, 1600, 480, 480, 576]


def test_our_search_finds_the_best_of_a_strict_space_before_chance_does(
    fates: dict[tuple[int, ...], Measurement | Failure],
) -> None:
    space = space_of(TINY, DEFAULT)
    seconds = {point: f.best_s for point, f in fates.items() if isinstance(f, Measurement)}

    def needed(name: str, seed: int) -> int:
        search = new_search(name, space, Terms(seed))
        for count in range(1, space.size + 1):
            (point,) = search.propose(1)
            search.learn(point, seconds.get(point))
            if seconds.get(point) == min(seconds.values()):
                return count
        raise AssertionError("the best point was never proposed")

    assert sum(needed("guided", seed) for seed in range(3)) < sum(needed("random", seed) for seed in range(3))
