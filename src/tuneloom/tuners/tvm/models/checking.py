"""A tuned model compared with the untuned one: outputs and times, under each of its sets of shapes."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from tuneloom.model import CheckResult, ModelRecipe, OwnRuntime
from tuneloom.tuners.tvm.boards.bench import board_session
from tuneloom.tuners.tvm.lowering.payloads import NO_TRACE
from tuneloom.tuners.tvm.measuring.energy import energy_of
from tuneloom.tuners.tvm.measuring.profiling import undisturbed, watch_of
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.kernel_times import foreign_shares
from tuneloom.tuners.tvm.models.compiling.running import Array, OpenModel
from tuneloom.tuners.tvm.models.making.compiled import compile_plain, plain_model, tuned_model
from tuneloom.tuners.tvm.models.making.lowered import lowered_model, tolerance_of
from tuneloom.tuners.tvm.models.making.untuned import untuned_run
from tuneloom.tuners.tvm.models.precision.samples import values_for
from tuneloom.tuners.tvm.models.rivals.turns import against_gpu_runtimes, against_runtimes, summed
from tuneloom.tuners.tvm.models.sizes.timing import in_rounds

_TIMING_S = 0.5
_LONG_S = 1.0
_MOST_RUNS = 300
_HOST = "cpu"
"""What TVM calls the device of models that run on the CPU, with or without an accelerator beside it."""


def check_model(recipe: ModelRecipe, schedules: dict[str, str], seed: int) -> CheckResult:
    """Run both on seeded inputs, compare, and time them in turn; once under each set of shapes.

    Where a dimension varies, other runtimes run the first of its sizes, the greatest, alone.
    """
    first, *others = recipe.variants()
    checks = [_check(first, schedules, seed)]
    checks += [_check(variant, schedules, seed, rivals=not recipe.varies) for variant in others]
    if not recipe.varies:
        return added(checks)
    timed = zip(checks, _in_turns(recipe, schedules, seed), strict=True) if others else ()
    by_shape = tuple((median(check.untuned_s), seconds) for check, seconds in timed)
    return replace(added(checks), own_runtime=checks[0].own_runtime, by_shape=by_shape)


def _in_turns(recipe: ModelRecipe, schedules: dict[str, str], seed: int) -> tuple[float, ...]:
    """What the programs of all sizes take."""
    compiled = [(variant, tuned_model(variant, schedules)) for variant in recipe.variants()]
    return in_rounds([one.open().timer(values_for(variant, one.inputs, seed)) for variant, one in compiled])


def _check(recipe: ModelRecipe, schedules: dict[str, str], seed: int, *, rivals: bool = True) -> CheckResult:
    compiled = tuned_model(recipe, schedules)
    compile_plain(recipe)
    tuned, plain = compiled.open(), plain_model(recipe).open()
    values = values_for(recipe, compiled.inputs, seed)
    first, got = untuned_run(recipe, plain_model(recipe), seed), tuned.run(values)
    difference = max(relative_difference(a, b) for a, b in zip(got, first.outputs, strict=True))
    watch = watch_of(compiled.device)
    (tuned_s, untuned_s), _ = undisturbed(lambda: time_in_turn(tuned, plain, values, first.seconds), watch)
    energy_j = energy_of(tuned.timer(values), watch)
    own: OwnRuntime | str = ""
    if rivals and board_session() is None:  # on a board the own runtime would not run here
        compare = against_runtimes if compiled.device == _HOST else against_gpu_runtimes
        own = compare(recipe, compiled, tuned, values, _TIMING_S)
    return CheckResult(
        difference=difference,
        tolerance=tolerance_of(recipe),
        tuned_s=tuned_s,
        untuned_s=untuned_s,
        foreign_shares=foreign_shares(compiled, values),
        own_runtime=None if isinstance(own, str) else own,
        uncompared=own if isinstance(own, str) else "",
        energy_j=energy_j,
        arbitrary=any(value.dtype.kind in "iu" for value in values),
    )


def added(checks: Sequence[CheckResult]) -> CheckResult:
    """One run under each set of shapes, as one run."""
    if len(checks) == 1:
        return checks[0]
    return CheckResult(
        difference=max(check.difference for check in checks),
        tolerance=checks[0].tolerance,
        tuned_s=summed([check.tuned_s for check in checks]),
        untuned_s=summed([check.untuned_s for check in checks]),
        foreign_shares={name: share for check in checks for name, share in check.foreign_shares.items()},
        own_runtime=_own_runtime([check.own_runtime for check in checks]),
        uncompared=next((check.uncompared for check in checks if check.uncompared), ""),
        energy_j=_all_or_none([check.energy_j for check in checks]),
        arbitrary=checks[0].arbitrary,
        by_shape=tuple((median(check.untuned_s), median(check.tuned_s)) for check in checks),
    )


def _own_runtime(found: Sequence[OwnRuntime | None]) -> OwnRuntime | None:
    """All variants as one run, in the fastest of the runtimes that run every one of them."""
    named = [{one.name: one for one in each.every} for each in found if each is not None]
    if len(named) < len(found):
        return None
    common = [name for name in named[0] if all(name in each for each in named)]
    sums = [_summed([each[name] for each in named]) for name in common]
    return OwnRuntime.fastest(sums) if sums else None


def _summed(known: Sequence[OwnRuntime]) -> OwnRuntime:
    return OwnRuntime(
        name=known[0].name,
        difference=max(one.difference for one in known),
        seconds=summed([one.seconds for one in known]),
        tuned_s=summed([one.tuned_s for one in known]),
    )


def _all_or_none(energies: Sequence[float | None]) -> float | None:
    known = [energy for energy in energies if energy is not None]
    return sum(known) if len(known) == len(energies) else None


def guilty_kernels(recipe: ModelRecipe, schedules: dict[str, str], seed: int) -> list[str]:
    """Which schedules change the model's outputs, found by compiling with each alone."""
    found = [_guilty(variant, schedules, seed) for variant in recipe.variants()]
    return list(dict.fromkeys(task for tasks in found for task in tasks))


def _guilty(recipe: ModelRecipe, schedules: dict[str, str], seed: int) -> list[str]:
    lowered = lowered_model(recipe)
    values = values_for(recipe, lowered.inputs, seed)
    expected = build_model(lowered, {}).open().run(values)
    guilty = []
    for task, trace in schedules.items():
        if trace == NO_TRACE:
            continue
        got = build_model(lowered, {task: trace}).open().run(values)
        if max(relative_difference(a, b) for a, b in zip(got, expected, strict=True)) > tolerance_of(recipe):
            guilty.append(task)
    return guilty


def time_in_turn(
    tuned: OpenModel, plain: OpenModel, values: list[Array], first_s: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Runs of both models, one after the other, for half a second each; of the tuned one at least three.

    A plain model whose first run took more than a second is not run again: that time is good enough.
    """
    timers = (tuned.timer(values), plain.timer(values))
    long = first_s > _LONG_S
    times: tuple[list[float], list[float]] = ([], [first_s] if long else [])
    ended = [False, long]
    while not all(ended):
        for n, timer in enumerate(timers):
            if not ended[n]:
                times[n].append(timer())
                ended[n] = _timed_enough(times[n], least=1 if n else 3)
    return tuple(times[0]), tuple(times[1])


def _timed_enough(times: list[float], least: int) -> bool:
    return len(times) >= _MOST_RUNS or (len(times) >= least and sum(times) > _TIMING_S)
