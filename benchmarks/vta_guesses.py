"""What a model's kernels on VTA lose because nothing tells the search which configurations can be built.

    pip install accelerators/vta
    python benchmarks/vta_guesses.py [--trials 10 20] [--seeds 5]

The search of `tune` on the ten convolutions of ResNet-18: first guesses, then the guided search. "Learned"
is the search as it is, to which a failed build is a trial; "filtered" sees only what can be built.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property
from math import inf
from statistics import mean, median

from threadpoolctl import threadpool_limits

from kernel_tables import table
from tuneloom.backends.implementers import Knobs
from tuneloom.model import Failure, Outcome, SearchOptions, Task, Trial
from tuneloom.model.space import values_in
from tuneloom.tuners.tvm.search.claimed import ClaimSearch
from tuneloom_vta.backend.implementer import VtaClaim
from tuneloom_vta.configuration import DEFAULT
from tuneloom_vta.measuring import build, profile
from tuneloom_vta.schedules.workloads import RESNET18, Convolution

Found = tuple[float, int, int]
"""The best time of a run, its failures, and those of them that were builds."""


class FilteredClaim(VtaClaim):
    """A claim that knows beforehand what can be built."""

    @cached_property
    def space(self) -> Knobs:
        return replace(VtaClaim(self.workload, self.accelerator).space, learned=False)


@cache
def outcome(workload: Convolution, text: str) -> Outcome:
    """What becomes of one configuration: always the same."""
    program = build(workload, values_in(text), DEFAULT)
    return program if isinstance(program, Failure) else profile(workload, program, DEFAULT)


def searched(claim: VtaClaim, trials: int, seed: int) -> Found:
    """One run of the search that a model's kernel has."""
    options = SearchOptions(seed=seed, trials=trials, batch=1)
    search = ClaimSearch("vta", claim, Task(key="layer", name="layer"), options)
    done: list[Trial] = []
    while len(done) < trials and (chosen := search.select(1)):
        done.append(Trial(candidate=chosen[0], outcome=outcome(claim.workload, chosen[0].configuration)))
        search.update(done[-1:])
    times = [trial.seconds for trial in done if trial.seconds is not None]
    return min(times, default=inf), len(done) - len(times), sum(not trial.built for trial in done)


def medians(kind: Callable[..., VtaClaim], layer: Convolution, trials: int, seeds: int) -> Found:
    """The same over seeds, number by number."""
    runs = [searched(kind(layer, DEFAULT), trials, seed) for seed in range(seeds)]
    best, failed, unbuilt = (median(column) for column in zip(*runs, strict=True))
    return best, failed, unbuilt


def rows(trials: int, seeds: int) -> Sequence[Sequence[object]]:
    """A row for each way: times relative to the filtered space, and failures, over the layers."""
    kinds = {"filtered": FilteredClaim, "learned": VtaClaim}
    found = {
        name: [medians(kind, layer, trials, seeds) for layer in RESNET18] for name, kind in kinds.items()
    }
    bests = [best for best, _, _ in found["filtered"]]
    told = []
    for name, runs in found.items():
        ratios = [run[0] / best for run, best in zip(runs, bests, strict=True)]
        failed, unbuilt = (f"{mean(run[column] for run in runs):.1f}" for column in (1, 2))
        told.append((trials, name, f"{max(ratios):.3f}", f"{mean(ratios):.3f}", failed, unbuilt))
    return told


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    with threadpool_limits(limits=1):
        every = [row for trials in arguments.trials for row in rows(trials, arguments.seeds)]
    print(table(("trials", "way", "slowest / filtered", "mean / filtered", "failed", "to build"), every))


if __name__ == "__main__":
    main()
