"""A tuner of one's own: how many numbers should plain Python add up at once?

A task is a list length; its space is the sizes of chunks; building prepares a program
text, profiling runs it. Packaged with `own_tuner.toml` as its `pyproject.toml` and installed,
it is used by `tuneloom tune chunks:1000`. Run this file to drive it by hand.
"""

import json
import time
from collections.abc import Sequence
from random import Random

from tuneloom.errors import InputError
from tuneloom.model import (
    Artifact,
    Candidate,
    Failure,
    FailureKind,
    Measurement,
    MeasuringRules,
    SearchOptions,
    Task,
    Trial,
)

SIZES = (1, 2, 3, 4, 8, 16, 50, 128, 1024)


class ChunkSearch:
    """Every size once, the smallest first, since that is the program nobody tuned; others by chance."""

    def __init__(self, count: int, options: SearchOptions, known: Sequence[Trial]) -> None:
        self._count = count
        tried = {trial.candidate.key for trial in known}
        others = list(SIZES[1:])
        Random(options.seed).shuffle(others)
        self._left = [size for size in (SIZES[0], *others) if str(size) not in tried]

    def select(self, count: int) -> list[Candidate]:
        chosen, self._left = self._left[:count], self._left[count:]
        return [
            Candidate(
                key=str(size),
                configuration=json.dumps({"chunk": size, "numbers": self._count}),
                origin="default" if size == SIZES[0] else "search",
            )
            for size in chosen
        ]

    def update(self, trials: Sequence[Trial]) -> None:
        """Nothing to learn: the order is fixed."""


class ChunkTuner:
    """Sums a list in chunks."""

    name = "chunks"

    def tasks(self, model: str) -> Sequence[Task]:
        """What `chunks:1000` asks for: the sum of so many numbers."""
        if not model.isdecimal() or not int(model):
            raise InputError(f"{model!r} is no number of numbers; write it as chunks:1000")
        return [Task(key=f"sum-{model}", name=f"sum of {model} numbers", payload=model.encode())]

    def open(self, task: Task, options: SearchOptions, known: Sequence[Trial]) -> ChunkSearch:
        return ChunkSearch(int(task.payload), options, known)

    def build(self, task: Task, candidate: Candidate, rules: MeasuringRules) -> Artifact | Failure:
        chosen = json.loads(candidate.configuration)
        size, count = int(chosen["chunk"]), int(chosen["numbers"])
        if count % size:
            message = f"chunks of {size} don't divide {count} numbers"
            return Failure(kind=FailureKind.BUILD_ERROR, message=message)
        text = f"total = 0\nfor at in range(0, {count}, {size}):\n    total += sum(numbers[at:at + {size}])\n"
        program = {"count": count, "text": text}
        return Artifact(payload=json.dumps(program).encode(), features={"characters": float(len(text))})

    def profile(
        self, task: Task, artifact: Artifact, rules: MeasuringRules, best_s: float | None
    ) -> Measurement | Failure:
        made = json.loads(artifact.payload)
        program, scope = compile(made["text"], "chunks", "exec"), {"numbers": list(range(made["count"]))}
        seconds = []
        for _ in range(rules.repeats):
            started = time.perf_counter()
            exec(program, scope)  # our own text, made above
            seconds.append(time.perf_counter() - started)
        if scope["total"] != sum(range(made["count"])):
            return Failure(kind=FailureKind.WRONG_RESULT, message=f"got {scope['total']}")
        return Measurement(seconds=tuple(seconds))


def main() -> None:
    """Drive the tuner by hand, as the stages do in their workers."""
    tuner, rules = ChunkTuner(), MeasuringRules()
    (task,) = tuner.tasks("1000")
    search = tuner.open(task, SearchOptions(seed=0, trials=9, batch=3), [])
    while batch := search.select(3):
        trials = []
        for candidate in batch:
            built = tuner.build(task, candidate, rules)
            outcome = built if isinstance(built, Failure) else tuner.profile(task, built, rules, None)
            trials.append(Trial(candidate=candidate, outcome=outcome))
            print(candidate.configuration, outcome)
        search.update(trials)


if __name__ == "__main__":
    main()
