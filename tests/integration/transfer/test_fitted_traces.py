"""Schedules moved between real kernels, in this process."""

from typing import Any

import pytest

from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.model import Artifact, Measurement, MeasuringRules, SearchOptions, Seed, Task, Trial
from tuneloom.transfer import DoesNotFit, Donor, fitted_seeds
from tuneloom.transfer.traces import fit_trace, fit_traces
from tuneloom.tuners.stages import forget, open_and_select, select
from tuneloom.tuners.tvm import TvmTuner
from tuneloom.tuners.tvm.lowering.payloads import pack_kernel, trace_text, unpack_kernel
from tuneloom.tuners.tvm.search.spaces import describe

POLICY = MeasuringRules(repeats=1, min_repeat_ms=1.0)


def product(rows: int, columns: int, *, relu: bool = False) -> Task:
    """A matrix product, with a ReLU behind it or not."""
    tvm = load_tvm()
    from tvm import te, tirx

    left, right = te.placeholder((rows, 8), name="left"), te.placeholder((8, columns), name="right")
    k = te.reduce_axis((0, 8), name="k")
    result = te.compute(
        (rows, columns), lambda i, j: te.sum(left[i, k] * right[k, j], axis=k), name="product"
    )
    if relu:
        result = te.compute(
            (rows, columns), lambda i, j: tirx.max(result[i, j], tirx.const(0.0)), name="relu"
        )
    function = te.create_prim_func([left, right, result]).with_attr("global_symbol", "main")
    name = f"matmul{'_relu' if relu else ''}"
    return Task(
        key=f"{name}{rows}x{columns}",
        name=name,
        gflop=1e-6 * rows * columns,
        kernel_class=name,
        payload=pack_kernel(tvm.IRModule({"main": function}), resolve_target("cpu")),
    )


@pytest.fixture(scope="module")
def giver() -> Task:
    return product(24, 64)


@pytest.fixture(scope="module")
def donors(giver: Task) -> list[Donor]:
    search = TvmTuner().open(giver, SearchOptions(seed=1, trials=8, batch=8), [])
    found = [candidate for candidate in search.select(8) if candidate.origin == "search"]
    return [
        Donor(
            record=number,
            task_key=giver.key,
            kernel_class="matmul",
            gflop=1.0,
            seconds=1.0 + number,
            device_key="cpu",
            origin=f"transfer:{number}",
            trace=candidate.configuration,
        )
        for number, candidate in enumerate(found)
    ]


def general_trace(task: Task) -> str:
    """A schedule of MetaSchedule's general space, as a stock database has it."""
    load_tvm()
    from tvm.s_tir import meta_schedule as ms

    kernel = unpack_kernel(task.payload)
    module, target = kernel.module, kernel.target
    context = ms.TuneContext(
        mod=module,
        target=target.to_tvm(),
        space_generator="post-order-apply",
        search_strategy="replay-trace",
        num_threads=1,
        rand_state=3,
    )
    return trace_text(context.generate_design_space()[0].trace)


def runs(task: Task, candidate: Any) -> bool:
    built = TvmTuner().build(task, candidate, POLICY)
    return isinstance(built, Artifact) and isinstance(
        TvmTuner().profile(task, built, POLICY, None), Measurement
    )


@pytest.mark.parametrize("relu", [False, True])
def test_another_shape_and_another_epilogue_begin_with_what_they_are_given(
    donors: list[Donor], relu: bool
) -> None:
    task = product(36, 128, relu=relu)
    (space,) = describe([task])
    fitted, _ = fitted_seeds(space, donors, 4)
    seeds = tuple(each.seed for each in fitted)
    search = TvmTuner().open(task, SearchOptions(seed=1, trials=8, batch=8, seeds=seeds), [])
    first, *others = search.select(8)
    given = [candidate for candidate in others if candidate.origin.startswith("transfer:")]
    assert first.origin == "default" and given
    assert [c.origin for c in others[: len(given)]] == [c.origin for c in given]
    assert all(runs(task, candidate) for candidate in given)


def test_a_search_that_is_open_proposes_what_it_is_given_next(
    donors: list[Donor],
) -> None:
    receiver = product(36, 128)
    (space,) = describe([receiver])
    fitted, _ = fitted_seeds(space, donors, 3)
    seeds = tuple(each.seed for each in fitted)
    open_and_select("open", "tvm", receiver, SearchOptions(seed=1, trials=8, batch=8), [], 3)
    origins = [candidate.origin for candidate in select("open", 8, seeds)]
    forget("open")
    given = [origin for origin in origins if origin.startswith("transfer:")]
    assert given and origins[: len(given)] == given
    assert "search" in origins


def test_a_search_never_proposes_what_others_were_seen_to_try() -> None:
    receiver = product(36, 128)
    options = SearchOptions(seed=1, trials=64, batch=8)
    twins = [open_and_select(name, "tvm", receiver, options, [], 6) for name in ("one", "two")]
    assert [c.key for c in twins[0]] == [c.key for c in twins[1]]
    tried = [Trial(candidate=c, outcome=Measurement(seconds=(1.0,))) for c in select("one", 8)]
    second = select("two", 8, (), tried)
    forget("one")
    forget("two")
    assert not {c.key for c in second} & {trial.candidate.key for trial in tried}


def test_with_only_seeds_nothing_is_searched(donors: list[Donor], giver: Task) -> None:
    (space,) = describe([giver])
    fitted, _ = fitted_seeds(space, donors, 2)
    options = SearchOptions(
        seed=1, trials=8, batch=8, seeds=tuple(each.seed for each in fitted), only_seeds=True
    )
    search = TvmTuner().open(giver, options, [])
    origins = [candidate.origin for candidate in search.select(8)]
    assert origins[:3] == ["default", "transfer:0", "transfer:1"]
    assert set(origins[3:]) <= {"guess"}
    assert search.select(8) == []


def test_a_seed_that_does_not_fit_is_left_out(giver: Task) -> None:
    seeds = (
        Seed(origin="transfer:1", sketch=99, decisions=()),
        Seed(origin="transfer:2", sketch=0, decisions=((7, 7),)),
        Seed(origin="transfer:3", configuration="nonsense"),
    )
    options = SearchOptions(seed=1, trials=8, batch=8, seeds=seeds, only_seeds=True)
    proposed = TvmTuner().open(giver, options, []).select(8)
    assert {candidate.origin for candidate in proposed} <= {"default", "guess"}


def test_a_foreign_trace_is_fitted_as_a_whole_and_runs(giver: Task) -> None:
    task = product(36, 128)
    ((*texts,),) = fit_traces([(task.payload, general_trace(giver))])
    assert texts
    seeds = tuple(Seed(origin="transfer:9", configuration=text) for text in texts)
    options = SearchOptions(seed=1, trials=8, batch=8, seeds=seeds, only_seeds=True)
    proposed = TvmTuner().open(task, options, []).select(8)
    given = [candidate for candidate in proposed if candidate.origin == "transfer:9"]
    assert given and all(runs(task, candidate) for candidate in given)


def test_what_does_not_fit_says_why(giver: Task) -> None:
    alien = product(24, 64, relu=True)
    assert isinstance(fit_trace(alien.payload, general_trace(giver), "copy"), DoesNotFit)
    assert isinstance(fit_trace(giver.payload, "[[],[],[]]", "copy"), DoesNotFit)
    assert isinstance(fit_trace(giver.payload, "nonsense", "nearest"), DoesNotFit)


def test_a_space_that_cannot_be_generated_has_no_sketches() -> None:
    (space,) = describe([Task(key="broken", name="broken", payload=b"{}")])
    assert space.sketches == ()
