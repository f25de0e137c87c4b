"""A convolution goes through the stages of any kernel, and its failures keep their kinds."""

import json

import pytest

from tuneloom.app.devices.base import MachineCores
from tuneloom.model import Artifact, Candidate, Failure, FailureKind, Measurement, MeasuringRules
from tuneloom.tuners.kernel import stages
from tuneloom.tuners.kernel.cargo import task_of
from tuneloom_vta import SMALL, Configuration
from tuneloom_vta.configuration import DEFAULT
from tuneloom_vta.device import KIND
from tuneloom_vta.kernel import kernel_of
from tuneloom_vta.schedules.workloads import Convolution

TINY = Convolution(name="tiny", height=8, width=8, in_channels=32, out_channels=64, kernel=3, padding=1)
GOOD = {"tile_h": 4, "tile_w": 8, "tile_ci": 1, "tile_co": 2, "oc_nthread": 2, "h_nthread": 1}


def tried(configuration: Configuration = DEFAULT, **changes: int) -> Measurement | Failure:
    task = task_of(kernel_of(TINY, configuration))
    candidate = Candidate(key="one", configuration=json.dumps({**GOOD, **changes}))
    made = stages.build(task, candidate, MeasuringRules())
    if isinstance(made, Artifact):
        assert made.features["inp_elements"] > 0
        return stages.profile(task, made, MeasuringRules(), None)
    return made


def test_a_candidate_takes_the_time_that_its_cycles_take() -> None:
    measured = [tried(), tried()]
    assert all(isinstance(one, Measurement) for one in measured)
    assert measured[0].seconds == measured[1].seconds  # type: ignore[union-attr]


def test_a_schedule_without_a_program_is_a_build_error() -> None:
    failure = tried(tile_ci=2)
    assert isinstance(failure, Failure) and failure.kind is FailureKind.BUILD_ERROR


def test_sums_read_too_early_are_a_wrong_result_that_leaves_the_process_alone() -> None:
    failure = tried(tile_h=1, tile_co=1)
    assert isinstance(failure, Failure) and failure.kind is FailureKind.WRONG_RESULT
    assert not failure.spoils_worker


def test_a_program_that_hangs_is_a_timeout() -> None:
    failure = tried(Configuration(watchdog_cycles=100))
    assert isinstance(failure, Failure) and failure.kind is FailureKind.RUN_TIMEOUT
    assert not failure.spoils_worker


def test_the_second_accelerator_is_another_kernel_by_configuration_alone() -> None:
    assert kernel_of(TINY, SMALL).space.shape != kernel_of(TINY).space.shape
    assert isinstance(tried(SMALL), Measurement)


def test_its_device_needs_a_compiler_and_a_core_for_what_it_can_not_compute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (entry,) = KIND.found(2)
    ground = MachineCores(name="far", host_cores=frozenset({0, 1}), device_cores=frozenset({2}))
    offer = KIND.offer(entry, ground)
    assert (offer.resource.name, offer.resource.key) == ("far/vta0", kernel_of(TINY).device_key)
    assert offer.cores == ground.device_cores
    assert len(offer.locks) == 2
    assert KIND.look(entry).usable
    monkeypatch.setenv("CC", "no-such-compiler")
    assert "needs a C compiler" in KIND.look(entry).trouble
