"""A tuner of one's own: how many numbers should plain Python add up at once?

A task is a list length; its space is the sizes of chunks; building prepares a program
text, profiling runs it. Run this file to tune with the parts that Tuneloom ships.
"""

import json
import time
from collections.abc import Sequence
from random import Random

from tuneloom.model import (
    Artifact,
    Candidate,
    Failure,
    FailureKind,
    Measurement,
    MeasuringPolicy,
    SearchOptions,
    Task,
    Trial,
)

SIZES = (1, 2, 3, 4, 8, 16, 50, 128, 1024)


class ChunkSearch:
    """Every size once, the smallest first, since that is the program nobody tuned; others by chance."""

    def __init__(self, options: SearchOptions, known: Sequence[Trial]) -> None:
        tried = {trial.candidate.key for trial in known}
        others = list(SIZES[1:])
        Random(options.seed).shuffle(others)
        self._left = [size for size in (SIZES[0], *others) if str(size) not in tried]

    def select(self, count: int) -> list[Candidate]:
        chosen, self._left = self._left[:count], self._left[count:]
        return [
            Candidate(
                key=str(size),
                configuration=json.dumps({"chunk": size}),
                origin="default" if size == SIZES[0] else "search",
            )
            for size in chosen
        ]

    def update(self, trials: Sequence[Trial]) -> None:
        """Nothing to learn: the order is fixed."""


class ChunkTuner:
    """Sums a list in chunks."""

    name = "chunks"

    def open(self, task: Task, options: SearchOptions, known: Sequence[Trial]) -> ChunkSearch:
        return ChunkSearch(options, known)

    def build(self, task: Task, candidate: Candidate, policy: MeasuringPolicy) -> Artifact | Failure:
        size = int(json.loads(candidate.configuration)["chunk"])
        if 1000 % size:
            return Failure(
                kind=FailureKind.BUILD_ERROR, message=f"chunks of {size} don't divide 1000 numbers"
            )
        text = f"total = 0\nfor at in range(0, 1000, {size}):\n    total += sum(numbers[at:at + {size}])\n"
        return Artifact(payload=text.encode(), features={"characters": float(len(text))})

    def profile(
        self, task: Task, artifact: Artifact, policy: MeasuringPolicy, best_s: float | None
    ) -> Measurement | Failure:
        program, scope = compile(artifact.payload, "chunks", "exec"), {"numbers": list(range(1000))}
        seconds = []
        for _ in range(policy.repeats):
            started = time.perf_counter()
            exec(program, scope)  # our own text, made above
            seconds.append(time.perf_counter() - started)
        if scope["total"] != sum(range(1000)):
            return Failure(kind=FailureKind.WRONG_RESULT, message=f"got {scope['total']}")
        return Measurement(seconds=tuple(seconds))


def main() -> None:
    """Drive the tuner by hand, as the stages do in their workers."""
    tuner, policy = ChunkTuner(), MeasuringPolicy()
    task = Task(key="sum-1000", name="sum of 1000 numbers")
    search = tuner.open(task, SearchOptions(seed=0, trials=9, batch=3), [])
    while batch := search.select(3):
        trials = []
        for candidate in batch:
            built = tuner.build(task, candidate, policy)
            outcome = built if isinstance(built, Failure) else tuner.profile(task, built, policy, None)
            trials.append(Trial(candidate=candidate, outcome=outcome))
            print(candidate.configuration, outcome)
        search.update(trials)


if __name__ == "__main__":
    main()
