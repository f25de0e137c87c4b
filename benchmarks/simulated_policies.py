"""How near each policy comes to the lower bound of the makespan, in simulation.

Usage: python benchmarks/simulated_policies.py [--seeds 10] [--out FILE]

Two settings. *Thesis*: equal jobs with the stage times measured when interleaving was
proposed (select 22, build 8.3, profile 39.5, update 22 s), one host slot, one device,
with and without forecasts. *Mixed*: jobs whose stage times spread over two orders of magnitude, on 8
devices of 3 kinds, arriving by a Poisson process; once with forecasts as they are,
once with every job's forecasts wrong by a factor of up to 10 either way, once without.
"""

import argparse
import json
import random
import statistics
from dataclasses import replace
from pathlib import Path

from tuneloom.model import Device, Host
from tuneloom.scheduling import POLICIES
from tuneloom.simulation import (
    THESIS_STAGES,
    RoundsJob,
    Workload,
    arriving,
    lower_bound,
    poisson_arrivals,
    simulate,
)

OUT = Path(__file__).parent / "results" / "simulated_policies.json"
FIRST_SEED = 1000
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
    return arriving(tuple(jobs), poisson_arrivals(count, per_hour, seed))


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


def ratios(
    jobs: tuple[RoundsJob, ...], resources: Resources, policies: list[str]
) -> dict[str, tuple[float, float]]:
    bound_s = lower_bound(jobs, resources).seconds
    found = {}
    for policy in policies:
        result = simulate(Workload(jobs=jobs), resources, policy, keep_log=False)
        assert not result.unfinished
        found[policy] = (result.makespan_s / bound_s, result.mean_stay_s)
    return found


def thesis_rows(rounds: int, how: str) -> list[Row]:
    resources: Resources = [Host(name="host", slots=1), Device(name="device", key="device")]
    rows: list[Row] = []
    for count in (2, 4, 16):
        found = ratios(forecasting(thesis_jobs(count, rounds), how, 0), resources, list(POLICIES))
        ratio = {name: round(against_bound, 4) for name, (against_bound, _) in found.items()}
        rows.append({"jobs": count, "rounds": rounds, "forecasts": how, **ratio})
    return rows


SETTINGS = (
    {"jobs": 24, "slots": 4, "per_hour": 40.0, "parts": 1},
    {"jobs": 24, "slots": 8, "per_hour": 40.0, "parts": 1},
    {"jobs": 24, "slots": 4, "per_hour": 40.0, "parts": 4},
    {"jobs": 60, "slots": 8, "per_hour": 100.0, "parts": 1},
)


def mixed_row(setting: dict[str, float], how: str, seeds: int) -> Row:
    own, other, stay = [], [], []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        jobs = mixed_jobs(int(setting["jobs"]), setting["per_hour"], seed, parts=int(setting["parts"]))
        jobs = forecasting(jobs, how, seed)
        found = ratios(jobs, mixed_floor(int(setting["slots"])), ["load-aware", "interleaved"])
        own.append(found["load-aware"][0])
        other.append(found["interleaved"][0])
        stay.append(found["load-aware"][1] / found["interleaved"][1])
    return {
        **setting,
        "forecasts": how,
        "seeds": seeds,
        "load-aware mean": round(statistics.mean(own), 4),
        "load-aware max": round(max(own), 4),
        "interleaved mean": round(statistics.mean(other), 4),
        "interleaved max": round(max(other), 4),
        "worse than interleaved": sum(mine > theirs + 1e-9 for mine, theirs in zip(own, other, strict=True)),
        "mean stay against interleaved": round(statistics.mean(stay), 3),
    }


def markdown(rows: list[Row]) -> str:
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="compare policies with the lower bound")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    thesis = [row for rounds in (10, 100) for how in ("true", "none") for row in thesis_rows(rounds, how)]
    print("Makespan divided by the lower bound, thesis stage times:\n")
    print(markdown(thesis), flush=True)
    mixed = [
        mixed_row(setting, how, arguments.seeds)
        for setting in SETTINGS
        for how in ("true", "wrong by 10", "none")
    ]
    print("\nThe same for mixed jobs on 8 devices of 3 kinds:\n")
    print(markdown(mixed))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"thesis": thesis, "mixed": mixed}, indent=2) + "\n")


if __name__ == "__main__":
    main()
