"""Invented but plausible data for a report page, of any size, the same for the same seed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from tuneloom.model import Candidate, Failure, FailureKind, Measurement, Task, Trial
from tuneloom.report import (
    DriftPoint,
    Fact,
    Gift,
    KnobPair,
    ModelResult,
    ReportData,
    ResourceInfo,
    ResourceSpan,
    ShownCluster,
    TaskResult,
    TaskTrial,
    Validity,
    ValidityCell,
    failure_counts,
    progress_of,
    task_result,
)

OPERATORS = ("conv2d_add_relu", "depthwise_conv2d_clip", "dense_add", "max_pool2d", "softmax", "matmul_gelu")
MESSAGES = {
    FailureKind.BUILD_ERROR: 'error: register allocation failed: <ran out of registers> & "spills"',
    FailureKind.RUN_TIMEOUT: "no result within 10 s",
    FailureKind.WRONG_RESULT: "largest difference 3.1e-2",
}
HOST = ResourceInfo(name="host", slots=2)
DEVICES = (
    ResourceInfo(name="cpu:1", device_key="sapphire-rapids"),
    ResourceInfo(name="gpu:0", device_key="h200"),
)


@dataclass(slots=True)
class Timeline:
    """When each slot and device is free again, and the spans so far."""

    slots: list[float] = field(default_factory=lambda: [0.0] * HOST.slots)
    devices: dict[str, float] = field(default_factory=lambda: {device.name: 0.0 for device in DEVICES})
    spans: list[ResourceSpan] = field(default_factory=list)

    def on_host(self, job: str, task: str, kind: str, ready_s: float, seconds: float) -> float:
        """Hold the first slot that is free; returns when it ends."""
        slot = min(range(len(self.slots)), key=lambda place: self.slots[place])
        start = max(ready_s, self.slots[slot])
        self.slots[slot] = start + seconds
        self._add(job, task, kind, HOST.name, ready_s, start, seconds)
        return start + seconds

    def on_device(self, job: str, task: str, device: str, ready_s: float, seconds: float) -> float:
        """Hold a device for a profile; returns when it ends."""
        start = max(ready_s, self.devices[device])
        self.devices[device] = start + seconds
        self._add(job, task, "profile", device, ready_s, start, seconds)
        return start + seconds

    def _add(
        self, job: str, task: str, kind: str, resource: str, ready_s: float, start: float, seconds: float
    ) -> None:
        self.spans.append(
            ResourceSpan(
                job=job,
                task=task,
                kind=kind,
                resource=resource,
                start_s=start,
                end_s=start + seconds,
                ready_s=ready_s,
            )
        )


def sample_report(
    *, jobs: int = 2, tasks: int = 8, rounds: int = 4, batch: int = 8, seed: int = 7
) -> ReportData:
    """A run of several jobs, each with so many tasks, rounds and candidates a round."""
    chance = Random(seed)
    timeline = Timeline()
    names = {f"run.{number}": f"network-{number}" for number in range(1, jobs + 1)}
    results: list[TaskResult] = []
    models: list[ModelResult] = []
    trials: list[Trial] = []
    for place, job in enumerate(list(names)):
        device = DEVICES[place % len(DEVICES)]
        found = [_tuned(task, rounds * batch, chance) for task in _tasks(job, tasks, chance)]
        names |= {task.key: task.name for task, _ in found}
        results += [task_result(job, task, tried) for task, tried in found]
        trials += [trial for _, tried in found for trial in tried]
        models.append(_model(job, names[job], device, found))
    for _ in range(rounds):
        for place in range(tasks):
            for model, result in zip(models, results[place::tasks], strict=True):
                device = next(device for device in DEVICES if device.device_key == model.device)
                _round(timeline, result.job, result.key, device.name, batch, chance)
    return ReportData(
        run="amber-heron-42",
        command="tuneloom tune network-1.onnx network-2.onnx --trials 256",
        created=1_790_000_000.0,
        seconds=max(span.end_s for span in timeline.spans),
        models=tuple(models),
        tasks=tuple(results),
        resources=(HOST, *DEVICES[: min(jobs, len(DEVICES))]),
        spans=tuple(timeline.spans),
        failures=failure_counts(trials),
        clusters=_clusters(results),
        gifts=_gifts(results, chance),
        validity=(_validity(chance),),
        facts=_facts(),
        drift=tuple(DriftPoint(at_s=10.0 * n, ratio=1 + chance.gauss(0.002, 0.004)) for n in range(60)),
        names=names,
    )


def _tasks(job: str, number: int, chance: Random) -> Iterator[Task]:
    for place in range(number):
        operator = OPERATORS[place % len(OPERATORS)]
        channels = 2 ** chance.randint(4, 9)
        yield Task(
            key=f"{job}-{place}",
            name=f"fused_{operator}_{place}",
            weight=chance.choice((1, 1, 2, 4)),
            gflop=channels / 700,
            shapes=f"1×{channels}×56×56, {channels}×{channels}×3×3",
            kernel_class=operator,
        )


def _tuned(task: Task, number: int, chance: Random) -> tuple[Task, list[Trial]]:
    untuned = 10 ** chance.uniform(-3.6, -2.2)
    floor = untuned / chance.uniform(1.5, 12)
    first = Candidate(key="default", configuration="{}", origin="default")
    trials = [Trial(candidate=first, outcome=Measurement(seconds=(untuned,)))]
    for place in range(1, number):
        candidate = Candidate(key=str(place), configuration="{}", origin=chance.choice(("search", "donor")))
        if chance.random() < 0.12:
            kind = chance.choice(list(MESSAGES))
            trials.append(Trial(candidate=candidate, outcome=Failure(kind=kind, message=MESSAGES[kind])))
        else:
            seconds = floor * (1 + chance.expovariate(1.0) * 9 / place**0.6)
            trials.append(Trial(candidate=candidate, outcome=Measurement(seconds=(seconds,))))
    return task, trials


def _round(timeline: Timeline, job: str, task: str, device: str, batch: int, chance: Random) -> None:
    selected = timeline.on_host(job, task, "select", min(timeline.slots), chance.uniform(2, 5))
    ended = selected
    for _ in range(batch):
        built = timeline.on_host(job, task, "build", selected, chance.uniform(0.3, 1.2))
        ended = timeline.on_device(job, task, device, built, chance.uniform(0.2, 0.9))
    timeline.on_host(job, task, "update", ended, chance.uniform(0.2, 0.8))


def _model(job: str, name: str, device: ResourceInfo, found: list[tuple[Task, list[Trial]]]) -> ModelResult:
    weights = {task.key: task.weight for task, _ in found}
    before = {task.key: tried[0].seconds or 0.0 for task, tried in found}
    rounds = zip(*(trials for _, trials in found), strict=True)
    tried = [
        TaskTrial(task_key=task.key, trial=trial)
        for together in rounds
        for (task, _), trial in zip(found, together, strict=True)
    ]
    progress = progress_of([task_result(job, task, trials) for task, trials in found], tried)
    return ModelResult(
        job=job,
        name=name,
        before_s=sum(weights[key] * seconds for key, seconds in before.items()),
        after_s=progress[-1].best_s,
        device=device.device_key or "",
        target="llvm -mcpu=sapphirerapids -num-cores=1",
        trials=len(tried),
        failed=sum(isinstance(each.trial.outcome, Failure) for each in tried),
        progress=progress,
    )


def _clusters(results: list[TaskResult]) -> tuple[ShownCluster, ...]:
    groups: dict[str, list[str]] = {}
    for result in results:
        groups.setdefault(result.kernel_class, []).append(result.key)
    return tuple(ShownCluster(representative=keys[0], members=tuple(keys)) for keys in groups.values())


def _gifts(results: list[TaskResult], chance: Random) -> tuple[Gift, ...]:
    gifts = []
    for result in results[1:7]:
        after = (result.before_s or 1e-3) / chance.uniform(0.6, 5)
        won = after < (result.before_s or 0.0)
        gifts.append(
            Gift(
                donor=results[0].key,
                receiver=result.key,
                source="quiet-otter-17, resnet18",
                before_s=result.before_s,
                after_s=after,
                used=won,
            )
        )
    return tuple(gifts)


def _validity(chance: Random) -> Validity:
    blocks, tiles = (16, 32, 64, 128, 256), range(1, 9)
    cells = tuple(_cell(block, tile, chance) for block in blocks for tile in tiles)
    pair = KnobPair(
        x_knob="block_x",
        y_knob="tile",
        x_values=tuple(map(str, blocks)),
        y_values=tuple(map(str, tiles)),
        cells=cells,
    )
    return Validity(pairs=(pair,), importance=(("block_x", 0.52), ("tile", 0.31), ("unroll", 0.17)))


def _cell(block: int, tile: int, chance: Random) -> ValidityCell:
    tried = chance.randint(0, 6)
    valid = sum(chance.random() < 0.9 for _ in range(tried)) if block * tile <= 640 else 0
    expected = 0.9 if block * tile <= 640 else 0.05
    return ValidityCell(x=str(block), y=str(tile), valid=valid, invalid=tried - valid, predicted=expected)


def _facts() -> tuple[Fact, ...]:
    return (
        Fact(name="Tuneloom", value="0.1.0"),
        Fact(name="TVM", value="0.27.0.post1"),
        Fact(name="measuring rules", value="3 repeats of at least 20 ms; hopeless beyond 3 times the best"),
        Fact(name="host", value="2 cores, Debian 12"),
        Fact(name="seed", value="42"),
    )
