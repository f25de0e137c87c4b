"""Which configuration every kernel of a model runs with, once its contest is over."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tuneloom.app.finishing.verdicts import Verdict, fall_back
from tuneloom.app.tasks.progress import is_borrowed
from tuneloom.backends.resolving import backend_of_text
from tuneloom.model import Trial
from tuneloom.tuners.tvm.lowering.payloads import NO_TRACE


@dataclass(slots=True)
class Choices:
    """What was decided about each kernel, by key.

    `known` are the best trials of earlier jobs on the very same kernels, where this job has nothing clearly
    faster. `same` are tasks with origins of what they got from records of the very same kernel and device.
    `guesses` are configurations for kernels of which nothing better is known than a first guess.
    """

    target: str
    known: Mapping[str, Trial] = field(default_factory=dict)
    same: frozenset[tuple[str, str]] = frozenset()
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    guesses: dict[str, str] = field(default_factory=dict)
    _unscheduled: set[str] = field(default_factory=set)

    @property
    def schedules(self) -> dict[str, str]:
        """The trace to use for each task that has one; the default's where that is the fastest."""
        used = {key: v.chosen or v.kept for key, v in self.verdicts.items()}
        traces = {key: c.trial.candidate.configuration for key, c in used.items() if c is not None}
        # Of a task where everything failed, nothing but the loops as they came in is trusted.
        barren = {key for key, v in self.verdicts.items() if v.barren}
        return self.guesses | traces | dict.fromkeys(barren | self._unscheduled, NO_TRACE)

    @property
    def unmeasured(self) -> set[str]:
        """Tasks that have no schedule, and of which none failed."""
        found = self.verdicts.items()
        return {key for key, v in found if v.chosen is None and v.kept is None and not v.barren}

    @property
    def built(self) -> tuple[list[tuple[str, str]], list[bytes]]:
        """Tasks with configurations that the model may use, and what was built for their trials."""
        found: dict[tuple[str, str], bytes] = {}
        for key, verdict in self.verdicts.items():
            for contender in (verdict.chosen, verdict.kept, *(own for _, own in verdict.own[:1])):
                if contender is not None and contender.artifact is not None:
                    found[key, contender.trial.candidate.configuration] = contender.artifact.payload
        on_host = backend_of_text(self.target).on_host
        return (list(found), list(found.values())) if on_host else ([], [])

    @property
    def borrowed(self) -> list[str]:
        """Tasks that will run with a schedule another task gave; not the same task in an earlier job."""
        chosen = {key: verdict.chosen for key, verdict in self.verdicts.items()}
        used = {key: c.trial.candidate.origin for key, c in chosen.items() if c is not None}
        return [key for key, origin in used.items() if is_borrowed(origin) and (key, origin) not in self.same]

    @property
    def instead(self) -> dict[str, str]:
        """The schedules of the model if all that was borrowed gave way."""
        own = {key: self.verdicts[key].own for key in self.borrowed}
        kept = {key: trace for key, trace in self.schedules.items() if key not in own}
        return kept | {key: best[0][1].trial.candidate.configuration for key, best in own.items() if best}

    def guess(self, found: Mapping[str, str]) -> None:
        """Use first guesses where nothing was measured."""
        untuned = self.unmeasured | (found.keys() - self.verdicts.keys())
        self.guesses = {key: guess for key, guess in found.items() if key in untuned}
        for key in self.guesses.keys() & self.verdicts.keys():
            self.verdicts[key].note = "not measured: an implementer's first guess is used"

    def give_way(self, losers: Mapping[str, float]) -> None:
        """Drop borrowed schedules that lost inside the model; the figures are what is faster there."""
        for key, instead_s in losers.items():
            fall_back(self.verdicts[key], instead_s)

    def refuse(self, failed: Mapping[str, str]) -> bool:
        """A schedule that TVM can't compile costs that schedule, not the model; whether that is news."""
        if failed.keys() <= self._unscheduled:
            return False
        for key, why in failed.items():
            self._unscheduled.add(key)
            if key in self.verdicts:
                self.verdicts[key].drop(f"not scheduled, since TVM can't compile its schedule: {why}")
        return True

    def drop_guilty(self, guilty: Iterable[str]) -> bool:
        """Drop schedules that made the model wrong, all if none was found out; whether there was one."""
        droppable = [key for key in self.schedules if key not in self._unscheduled]
        for key in [key for key in guilty if key in droppable] or droppable:
            self._drop(key, "its schedule changed the outputs of the model and was dropped")
        return bool(droppable)

    def _drop(self, key: str, note: str) -> None:
        self.guesses.pop(key, None)
        if key in self.verdicts:
            self.verdicts[key].drop(note)
            self.verdicts[key].barren = False
