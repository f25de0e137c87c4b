"""Tuners that others could have written, registered by entry points: some misbehave on purpose."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tuneloom.app.kinds.model.kind import KIND
from tuneloom.model import (
    Artifact,
    Candidate,
    Failure,
    Measurement,
    MeasuringRules,
    Search,
    SearchOptions,
    Task,
    Trial,
)
from tuneloom.testing.engines import calls
from tuneloom.tuners.tvm import TvmTuner

MOODS = ("crash", "hang", "eat_memory", "refuse", "chatter")
"""Functions of `tuneloom.testing.engines.calls` that a build or a run may go through."""


class MoodySearch:
    """TVM's search; the first candidates after the default carry a mood each."""

    def __init__(self, search: Search, proposed: int) -> None:
        self._search = search
        self._count = proposed

    def select(self, count: int) -> list[Candidate]:
        return [self._moody(candidate) for candidate in self._search.select(count)]

    def update(self, trials: Sequence[Trial]) -> None:
        self._search.update(trials)

    def _moody(self, candidate: Candidate) -> Candidate:
        number, self._count = self._count, self._count + 1
        moods = [f"{stage} {mood}" for mood in MOODS for stage in ("build", "run")]
        return replace(candidate, origin=moods[number - 1]) if 0 < number <= len(moods) else candidate


class ShortSearch:
    """Proposes one candidate, so that all other trials are left to kernels that matter."""

    def __init__(self, search: Search) -> None:
        self._left = search.select(1)

    def select(self, count: int) -> list[Candidate]:
        chosen, self._left = self._left[:count], self._left[count:]
        return chosen

    def update(self, trials: Sequence[Trial]) -> None:
        pass


class MoodyTuner(TvmTuner):
    """Candidates of convolutions crash, hang, eat memory, raise or talk, while they are built or run."""

    name = "moody"

    def open(self, task: Task, options: SearchOptions, known: Sequence[Trial]) -> Search:
        search = super().open(task, options, known)
        return MoodySearch(search, len(known)) if "conv" in task.name else ShortSearch(search)

    def build(self, task: Task, candidate: Candidate, rules: MeasuringRules) -> Artifact | Failure:
        stage, _, mood = candidate.origin.partition(" ")
        if stage == "build":
            getattr(calls, mood)()
        built = super().build(task, candidate, rules)
        if stage == "run" and isinstance(built, Artifact):
            return replace(built, payload=mood.encode() + b"\0" + built.payload)
        return built

    def profile(
        self, task: Task, artifact: Artifact, rules: MeasuringRules, best_s: float | None
    ) -> Measurement | Failure:
        mood, _, rest = artifact.payload.partition(b"\0")
        if mood.decode("latin-1") in MOODS:
            getattr(calls, mood.decode())()
            return super().profile(task, replace(artifact, payload=rest), rules, best_s)
        return super().profile(task, artifact, rules, best_s)


class WatchedTuner(TvmTuner):
    """Writes down every candidate that is built for a trial, with the number of the process."""

    name = "watched"

    def build(self, task: Task, candidate: Candidate, rules: MeasuringRules) -> Artifact | Failure:
        if candidate.payload:
            with Path(os.environ["WATCHED_BUILDS"]).open("a") as file:
                file.write(f"{os.environ['WATCHED_ROUND']} {task.key} {candidate.key}\n")
        return super().build(task, candidate, rules)


class WrongSearch(ShortSearch):
    """Proposes the default, and one schedule that rounds everything to whole numbers."""

    def __init__(self, search: Search, task: Task) -> None:
        super().__init__(search)
        self._left.append(_rounding(task))


class WrongTuner(TvmTuner):
    """Finds a schedule that is fast and wrong, and swears by it."""

    name = "wrong"

    def open(self, task: Task, options: SearchOptions, known: Sequence[Trial]) -> Search:
        return WrongSearch(super().open(task, options, known), task)

    def build(self, task: Task, candidate: Candidate, rules: MeasuringRules) -> Artifact | Failure:
        built = super().build(task, candidate, rules)
        if isinstance(built, Failure) or candidate.origin == "default":
            return built
        return replace(built, features={"wrong": 1.0})

    def profile(
        self, task: Task, artifact: Artifact, rules: MeasuringRules, best_s: float | None
    ) -> Measurement | Failure:
        """The wrong one is so much faster that the default is not even compared with it at the end."""
        measured = super().profile(task, artifact, rules, best_s)
        if isinstance(measured, Failure):
            return measured
        return replace(measured, seconds=(1e-3 if "wrong" in artifact.features else 1.0,))


def _rounding(task: Task) -> Candidate:
    from tvm.s_tir import Schedule

    from tuneloom.tuners.tvm.lowering.payloads import pack_kernel, trace_text
    from tuneloom.tuners.tvm.lowering.tasks import unpack
    from tuneloom.tuners.tvm.search.sketches import key_of

    kernel = unpack(task)
    schedule = Schedule(kernel.module)
    block = schedule.get_child_blocks(schedule.get_sblock("root"))[-1]
    schedule.cache_write(block, 0, "global")
    schedule.unsafe_set_dtype(block, 0, "int8")
    text = trace_text(schedule.trace)
    return Candidate(key=key_of(text), configuration=text, payload=pack_kernel(schedule.mod, kernel.target))


MOODY, WATCHED, WRONG = (replace(KIND, name=name) for name in ("moody", "watched", "wrong"))
"""Models of TVM whose kernels these tuners search, as kinds of jobs of their own."""
