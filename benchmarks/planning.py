"""How long planning takes when the bank is large.

    python benchmarks/planning.py [--model resnet50] [--records 100000] [--out FILE]

The bank is invented: workloads with shapes near those of the model's own kernels and of the
same classes, each with records whose decisions are drawn at random from the real sketches.
Planning is measured without the model's import, which tuning needs anyway: describing the
spaces of all tasks, then clusters, donors and fits.
"""

import argparse
import json
import os
import random
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tuneloom.app.reuse.asking import ModelSurvey, plan_tasks
from tuneloom.model import (
    Budget,
    Candidate,
    Decision,
    JobSpec,
    Measurement,
    ModelRecipe,
    SketchSpace,
    Task,
    TileDomain,
    Trial,
)
from tuneloom.store import Provenance, Store, open_store
from tuneloom.transfer.fitting import divisors
from tuneloom.tuners.tvm.models.opening import open_model
from tuneloom.tuners.tvm.search.spaces import describe

PER_WORKLOAD = 200
_NUMBER = re.compile(r"\d+")


def invented_tasks(tasks: tuple[Task, ...], count: int, chance: random.Random) -> Iterator[tuple[int, Task]]:
    """Tasks like real ones with other shapes; each with the number of the one it was made from."""
    for number in range(count):
        place = number % len(tasks)
        model = tasks[place]
        factor = chance.choice((1, 2, 3, 4))
        shapes = grown(model.shapes, factor)
        yield (
            place,
            Task(
                key=f"invented-{number}",
                name=f"{model.name}_{number}",
                gflop=model.gflop * factor,
                shapes=shapes,
                kernel_class=model.kernel_class,
                payload=b"{}",
            ),
        )


def grown(shapes: str, factor: int) -> str:
    """The same shapes, every extent so many times as large."""
    return _NUMBER.sub(lambda found: str(int(found[0]) * factor), shapes)


def invented_trace(sketch: SketchSpace, chance: random.Random) -> str:
    """A sketch with decisions at random."""
    instructions, decided = json.loads(sketch.trace)
    drawn = [_drawn(knob, chance) for knob in sketch.knobs]
    return json.dumps([instructions, [[at, value] for (at, _), value in zip(decided, drawn, strict=True)]])


def _drawn(knob: Any, chance: random.Random) -> Decision | list[int]:
    if not isinstance(knob, TileDomain):
        return int(knob.low + chance.randrange(knob.count))
    left, factors = knob.extent, []
    for _ in range(knob.parts - 1):
        factors.append(chance.choice([d for d in divisors(left) if d <= knob.innermost_max]))
        left //= factors[-1]
    return [left, *factors]


def fill(store: Store, survey: ModelSurvey, records: int) -> int:
    """Put so many records into the bank; returns of how many workloads."""
    chance = random.Random(0)
    summary = survey.summary
    where = Provenance(family=summary.family, target=summary.target, device_key="cpu", tvm_version="0")
    job = store.add_job(store.create_run("invented").id, "bank").id
    usable = [n for n, space in enumerate(survey.spaces) if space.sketches]
    tasks = tuple(summary.tasks[n] for n in usable)
    made = list(invented_tasks(tasks, records // PER_WORKLOAD, chance))
    store.add_tasks(job, [task for _, task in made], family=summary.family, target=summary.target)
    for place, task in made:
        sketches = survey.spaces[usable[place]].sketches
        trials = []
        for number in range(PER_WORKLOAD):
            trace = invented_trace(chance.choice(sketches), chance)
            seconds = max(task.gflop, 1e-4) / chance.uniform(1.0, 100.0)
            candidate = Candidate(key=f"{number}", configuration=trace)
            trials.append(Trial(candidate=candidate, outcome=Measurement(seconds=(seconds,))))
        store.add_trials(job, task.key, trials, where)
    return len(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/planning.json"))
    options = parser.parse_args()
    recipe = ModelRecipe(key="plan", source=f"zoo:{options.model}", shapes={}, target="cpu")
    summary = open_model(recipe)
    assert not isinstance(summary, Exception), summary
    describe(summary.tasks[:1])
    started, cpu = time.perf_counter(), time.process_time()
    survey = ModelSurvey(summary=summary, spaces=tuple(describe(summary.tasks)))
    describing = (time.perf_counter() - started, time.process_time() - cpu)
    rows = []
    with tempfile.TemporaryDirectory(prefix="tuneloom-planning-") as folder:
        store = open_store(Path(folder) / "store.db")
        empty = _planned(store, survey, "auto")
        workloads = fill(store, survey, options.records)
        rows = [{"bank": 0, **empty}]
        rows += [
            {"bank": options.records, **_planned(store, survey, mode)} for mode in ("auto", "transfer-only")
        ]
        store.close()
    result = {
        "model": options.model,
        "tasks": len(summary.tasks),
        "records": options.records,
        "workloads": workloads,
        "load": os.getloadavg()[0],
        "describing_s": round(describing[0], 3),
        "describing_cpu_s": round(describing[1], 3),
        "planning": rows,
    }
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


def _planned(store: Store, survey: ModelSurvey, mode: str) -> dict[str, Any]:
    spec = JobSpec(name="plan", model="zoo", budget=Budget(trials=1000), reuse=mode)
    started, cpu = time.perf_counter(), time.process_time()
    plan = plan_tasks(store, spec, survey)
    taken, used = time.perf_counter() - started, time.process_time() - cpu
    counts: dict[str, int] = {}
    for task in plan.tasks:
        counts[task.action.value] = counts.get(task.action.value, 0) + 1
    return {"mode": mode, "seconds": round(taken, 3), "cpu_s": round(used, 3), "actions": counts}


if __name__ == "__main__":
    main()
