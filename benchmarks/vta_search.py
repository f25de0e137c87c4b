"""Our search against AutoTVM's on the VTA accelerator, where most configurations fail.

    pip install accelerators/vta
    python benchmarks/vta_search.py [--seeds 80] [--workers 2] [--minutes 60]
    python benchmarks/vta_search.py --report

The ten different convolutions of ResNet-18 after its first layer. Every space is measured as
a whole on the simulator first; the searches then see what was measured. A measurement is one
trial, whether it fails or not; those that pass building reach the device. Runs end at the
optimum of the space or after 1000 measurements.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from math import inf
from pathlib import Path
from time import monotonic, process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import tests_on_path  # noqa: F401
from support.spaces import presampled
from tuneloom.model import Failure, FailureKind
from tuneloom.tuners.kernel.factors import Point
from tuneloom.tuners.kernel.search.pool import as_point
from tuneloom.tuners.kernel.search.presampling import Presample
from tuneloom.tuners.kernel.search.searches import new_search
from tuneloom.tuners.kernel.search.terms import Terms
from tuneloom.tuners.kernel.space import Space
from tuneloom.tuners.replay.recording import Entry, Recording
from tuneloom_vta.configuration import DEFAULT, SMALL, Configuration
from tuneloom_vta.measuring import build, profile
from tuneloom_vta.schedules.knobs import space_of
from tuneloom_vta.schedules.program import Program
from tuneloom_vta.schedules.workloads import RESNET18, Convolution
from vta_tables import page

RESULTS = Path(__file__).parent / "results" / "vta_search.jsonl"
ACCELERATORS = {configuration.name: configuration for configuration in (DEFAULT, SMALL)}
AUTOTVM, PUBLISHED, OURS, PRESAMPLED = "autotvm", "autotvm+start", "tuneloom", "tuneloom+presampled"
SEARCHES = (AUTOTVM, PUBLISHED, OURS, PRESAMPLED)
BUDGET = 1000
_BUILT_AT_MOST = 1000
_BUILD_BATCH = 64
_IN_VAIN = 8  # builds that fail and are no measurements, for each of the budget, as in kernel jobs
Line = dict[str, Any]


def recorded(workload: Convolution, configuration: Configuration) -> tuple[Recording, Line]:
    """The whole space, and how fast it was measured in time of the processor."""
    space = space_of(workload, configuration)
    entries, ran, spent = {}, 0, 0.0
    for point in space.points():
        knobs = space.configuration(point)
        began = process_time()
        made = build(workload, knobs, configuration)
        outcome = profile(workload, made, configuration) if isinstance(made, Program) else made
        if isinstance(made, Program):
            ran, spent = ran + 1, spent + process_time() - began
        known = Entry(None, outcome.kind) if isinstance(outcome, Failure) else Entry(outcome.best_s * 1e3)
        entries[tuple(knobs.values())] = known
    recording = Recording(workload.name, space.names, entries)
    told = {"layer": workload.name, "points": space.size, "invalid_share": recording.invalid_share}
    kinds = {kind.value: count for kind, count in sorted(recording.failures().items())}
    return recording, told | {
        "best_ms": recording.best_ms,
        "failures": kinds,
        "measured": ran,
        "spent_s": spent,
    }


def published_presampling(space: Space, recording: Recording, seed: int) -> list[Presample]:
    """Points built around those that build, at most a thousand, as the published start does it."""
    rng = np.random.default_rng([seed, 83])
    queue = _drawn(space, rng, _BUILD_BATCH)
    found: dict[Point, bool] = {}
    while queue and len(found) < min(_BUILT_AT_MOST, space.size):
        batch = [queue.pop(int(rng.integers(len(queue)))) for _ in range(min(_BUILD_BATCH, len(queue)))]
        for point in batch:
            if point in found or len(found) == _BUILT_AT_MOST:
                continue
            found[point] = builds(recording, point)
            around = (
                [as_point(step) for step in space.steps(point)] if found[point] else _drawn(space, rng, 1)
            )
            queue += [other for other in around if other not in found]
        queue = queue or [point for point in _drawn(space, rng, _BUILD_BATCH) if point not in found]
    return [Presample(point, good) for point, good in found.items()]


def _drawn(space: Space, rng: np.random.Generator, count: int) -> list[Point]:
    return [as_point(point) for point in space.sample(count, rng)]


def builds(recording: Recording, point: Point) -> bool:
    """Whether a point gets as far as the device."""
    return recording.at(point).failure is not FailureKind.BUILD_ERROR


def searched(recording: Recording, name: str, seed: int) -> Line:
    """One run: the fate of every measurement as a letter, and each new best with its number."""
    space = recording.space
    terms = Terms(seed, trials=BUDGET, screens=name == PRESAMPLED)
    search = new_search(name.split("+")[0].replace(OURS, "guided"), space, terms)
    samples: Sequence[Presample] = ()
    if name == PUBLISHED:
        samples = published_presampling(space, recording, seed)
    if name == PRESAMPLED:
        samples = presampled(space, lambda point: builds(recording, point), seed, BUDGET)
    for sample in samples:
        search.hear(sample.point, sample.builds)
    fates, bests, best, in_vain = "", [], inf, 0
    while len(fates) < BUDGET and best > recording.best_ms and (points := search.propose(1)):
        entry = recording.at(points[0])
        if name == PRESAMPLED:
            search.hear(points[0], builds(recording, points[0]))
            if not builds(recording, points[0]) and in_vain < _IN_VAIN * BUDGET:
                in_vain += 1
                continue
        search.learn(points[0], None if entry.time_ms is None else entry.time_ms / 1e3)
        fates += _letter(entry)
        if entry.time_ms is not None and entry.time_ms < best:
            best = entry.time_ms
            bests.append([len(fates), best])
    return {"layer": recording.name, "search": name, "seed": seed, "fates": fates, "bests": bests} | {
        "builds": len(samples) + in_vain
    }


def _letter(entry: Entry) -> str:
    """`v`alid, failed to `b`uild, failed to `r`un."""
    if entry.failure is None:
        return "v"
    return "b" if entry.failure is FailureKind.BUILD_ERROR else "r"


def layer_runs(number: int, accelerator: str, wanted: Sequence[tuple[int, str]], until: float) -> list[Line]:
    """Runs on one layer, as (seed, search), that begin in time; first what is to be said of its space."""
    recording, told = recorded(RESNET18[number], ACCELERATORS[accelerator])
    lines = [told]
    with threadpool_limits(limits=1):
        for seed, name in wanted:
            if monotonic() < until:
                lines.append(searched(recording, name, seed))
    return [line | {"accelerator": accelerator} for line in lines]


def missing(
    arguments: argparse.Namespace, kept: Sequence[Line]
) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """Layers with some runs of each that are not kept, so that every layer has runs when time is up."""
    done = {(line["layer"], line["seed"], line["search"]) for line in kept if "fates" in line}
    for first in range(0, arguments.seeds, arguments.chunk):
        seeds = range(first, min(first + arguments.chunk, arguments.seeds))
        for number, layer in enumerate(RESNET18):
            runs = [(s, n) for s in seeds for n in arguments.searches if (layer.name, s, n) not in done]
            if runs:
                yield number, runs


def kept_lines(path: Path, accelerator: str) -> list[Line]:
    """Everything that was measured so far on one accelerator; a file may hold several."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in lines if line["accelerator"] == accelerator]


def measure(arguments: argparse.Namespace) -> None:
    """Run what is missing, and keep it."""
    until = monotonic() + 60 * arguments.minutes
    with ProcessPoolExecutor(arguments.workers) as pool, arguments.out.open("a") as out:
        jobs = [
            pool.submit(layer_runs, number, arguments.accelerator, runs, until)
            for number, runs in missing(arguments, kept_lines(arguments.out, arguments.accelerator))
        ]
        for job in as_completed(jobs):
            out.writelines(json.dumps(line) + "\n" for line in job.result())
            out.flush()


def main() -> None:
    """Measure what is missing, then write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--accelerator", choices=ACCELERATORS, default=DEFAULT.name)
    parser.add_argument("--seeds", type=int, default=80)
    parser.add_argument("--chunk", type=int, default=5, help="seeds that one process runs on one layer")
    parser.add_argument("--searches", nargs="*", choices=SEARCHES, default=list(SEARCHES))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=inf, help="begin no run afterwards")
    parser.add_argument("--report", action="store_true", help="only write the page of what was measured")
    arguments = parser.parse_args()
    if not arguments.report:
        measure(arguments)
    lines = kept_lines(arguments.out, arguments.accelerator)
    if not any(line.get("search") == AUTOTVM for line in lines):
        parser.error(f"the goal is AutoTVM's best, and {arguments.out} has no run of {AUTOTVM}")
    arguments.out.with_suffix(".md").write_text(page(lines, SEARCHES, BUDGET))


if __name__ == "__main__":
    main()
