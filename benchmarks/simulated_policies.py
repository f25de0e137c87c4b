"""How near each policy comes to the lower bound of the makespan, in simulation.

Usage: python benchmarks/simulated_policies.py [--seeds 16] [--first 3000] [--out FILE]

Two settings. *Thesis*: equal jobs with the stage times measured when interleaving was
proposed (select 22, build 8.3, profile 39.5, update 22 s), one host slot, one device,
with and without forecasts. *Mixed*: jobs whose stage times spread over two orders of magnitude, on 8
devices of 3 kinds, arriving by a Poisson process; once with forecasts as they are,
once with every job's forecasts wrong by a factor of up to 10 either way, once without.

The *plain* bound is the work of the busiest resource or the longest chain; thesis rows are
against this one. The other bound also knows that chains have heads and tails, that parts do
not divide, and that long turns do not fit into short gaps.
"""

import argparse
import json
import random
import statistics
from dataclasses import dataclass, replace
from pathlib import Path

from tuneloom.model import Device, Host
from tuneloom.scheduling import POLICIES
from tuneloom.simulation import (
    THESIS_STAGES,
    LowerBound,
    RoundsJob,
    Workload,
    lower_bound,
    poisson_arrivals,
    simulate,
)

OUT = Path(__file__).parent / "results" / "simulated_policies.json"
FIRST_SEED = 3000
"""Seeds below this one were looked at while the policy was made."""

Resources = list[Host | Device]
Row = dict[str, object]


def thesis_jobs(count: int, rounds: int) -> tuple[RoundsJob, ...]:
    return tuple(RoundsJob(name=f"job-{index}", rounds=rounds) for index in range(count))


def mixed_jobs(count: int, per_hour: float, seed: int, *, parts: int) -> tuple[RoundsJob, ...]:
    chance = random.Random(seed)
    jobs = []
    for index in range(count):
        scale = 10 ** chance.uniform(-1, 1)
        stages = {kind: seconds * scale * chance.uniform(0.5, 1.5) for kind, seconds in THESIS_STAGES.items()}
        jobs.append(
            RoundsJob(
                name=f"job-{index}",
                rounds=chance.randint(5, 30),
                stages=stages,
                parts=parts,
                device_key=chance.choice(("big", "big", "mid", "mid", "rare")),
            )
        )
    times = poisson_arrivals(count, per_hour, seed)
    return tuple(replace(job, arrives_s=at_s) for job, at_s in zip(jobs, times, strict=True))


def forecasting(jobs: tuple[RoundsJob, ...], how: str, seed: int) -> tuple[RoundsJob, ...]:
    """The same jobs, forecasting their stages truly, wrongly or not at all."""
    chance = random.Random(seed)
    if how == "none":
        return jobs
    spread = {"true": 0.0, "wrong by 10": 1.0}[how]
    return tuple(replace(job, prior_factor=10 ** chance.uniform(-spread, spread)) for job in jobs)


def mixed_floor(slots: int) -> Resources:
    counts = {"big": 4, "mid": 3, "rare": 1}
    devices = [Device(name=f"{key}-{n}", key=key) for key, count in counts.items() for n in range(count)]
    return [Host(name="host", slots=slots), *devices]


@dataclass(frozen=True, slots=True)
class Played:
    """One policy on one workload: its makespan against both bounds, and how long jobs stayed."""

    ratio: float
    plain: float
    stay_s: float


def play(jobs: tuple[RoundsJob, ...], resources: Resources, policy: str, bound: LowerBound) -> Played:
    result = simulate(Workload(jobs=jobs), resources, policy, keep_log=False)
    assert not result.unfinished
    return Played(result.makespan_s / bound.seconds, result.makespan_s / bound.plain_s, result.mean_stay_s)


def thesis_rows(rounds: int, how: str) -> list[Row]:
    resources: Resources = [Host(name="host", slots=1), Device(name="device", key="device")]
    rows: list[Row] = []
    for count in (2, 4, 16):
        jobs = forecasting(thesis_jobs(count, rounds), how, 0)
        bound = lower_bound(jobs, resources)
        ratio = {name: round(play(jobs, resources, name, bound).plain, 4) for name in POLICIES}
        rows.append({"jobs": count, "rounds": rounds, "forecasts": how, **ratio})
    return rows


SETTINGS = (
    {"jobs": 24, "slots": 4, "per_hour": 40.0, "parts": 1},
    {"jobs": 24, "slots": 8, "per_hour": 40.0, "parts": 1},
    {"jobs": 24, "slots": 4, "per_hour": 40.0, "parts": 4},
    {"jobs": 60, "slots": 8, "per_hour": 100.0, "parts": 1},
)


def mixed_rows(setting: dict[str, float], seeds: range) -> list[Row]:
    """One setting with each kind of forecast; interleaved hears none, so it is played once."""
    resources, forecasts = mixed_floor(int(setting["slots"])), ("true", "wrong by 10", "none")
    found: dict[str, list[tuple[Played, Played]]] = {how: [] for how in forecasts}
    for seed in seeds:
        jobs = mixed_jobs(int(setting["jobs"]), setting["per_hour"], seed, parts=int(setting["parts"]))
        bound = lower_bound(jobs, resources)
        other = play(jobs, resources, "interleaved", bound)
        for how in forecasts:
            own = play(forecasting(jobs, how, seed), resources, "load-aware", bound)
            found[how].append((own, other))
    return [{**setting, "forecasts": how, "seeds": len(seeds), **summary(found[how])} for how in forecasts]


def summary(played: list[tuple[Played, Played]]) -> Row:
    """Load-aware beside interleaved, over all seeds."""
    own = [mine.ratio for mine, _ in played]
    against = [mine.ratio / theirs.ratio for mine, theirs in played]
    return {
        "load-aware mean": round(statistics.mean(own), 4),
        "load-aware max": round(max(own), 4),
        "above 1.10": sum(ratio > 1.10 for ratio in own),
        "mean against the plain bound": round(statistics.mean(mine.plain for mine, _ in played), 4),
        "interleaved mean": round(statistics.mean(theirs.ratio for _, theirs in played), 4),
        "interleaved max": round(max(theirs.ratio for _, theirs in played), 4),
        "worse than interleaved": sum(ratio > 1 + 1e-9 for ratio in against),
        "at worst by": f"{max(0.0, max(against) - 1):.2%}",
        "mean stay against interleaved": round(
            statistics.mean(mine.stay_s / theirs.stay_s for mine, theirs in played), 3
        ),
    }


def markdown(rows: list[Row]) -> str:
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="compare policies with the lower bound")
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="the first of the seeds")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    thesis = [row for rounds in (10, 100) for how in ("true", "none") for row in thesis_rows(rounds, how)]
    print("Makespan divided by the lower bound, thesis stage times:\n")
    print(markdown(thesis), flush=True)
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    mixed = [row for setting in SETTINGS for row in mixed_rows(setting, seeds)]
    print("\nThe same for mixed jobs on 8 devices of 3 kinds:\n")
    print(markdown(mixed))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"thesis": thesis, "mixed": mixed}, indent=2) + "\n")


if __name__ == "__main__":
    main()
