"""The kernel tuner: knob spaces under the same stages as everything else."""

import hashlib
import json
from collections.abc import Sequence

from tuneloom.errors import SpaceError
from tuneloom.model import (
    Artifact,
    Candidate,
    Failure,
    Measurement,
    MeasuringRules,
    ProposalReason,
    SearchOptions,
    Task,
    Trial,
)
from tuneloom.tuners.kernel import NAME, PRESAMPLED, stages
from tuneloom.tuners.kernel.cargo import space_of
from tuneloom.tuners.kernel.factors import Point
from tuneloom.tuners.kernel.search.presampling import Presample
from tuneloom.tuners.kernel.search.searches import PointSearch, new_search
from tuneloom.tuners.kernel.search.terms import StartingPoint, Terms
from tuneloom.tuners.kernel.space import Space


class KernelTuner:
    """Searches, builds and runs kernels given by their knobs.

    `extra` of the options names `search` and `init`; `presampled` is what building alone
    has shown.
    """

    name = NAME

    def open(self, task: Task, options: SearchOptions, known: Sequence[Trial]) -> "KernelSearch":
        """Start a search that knows these trials; raises InputError for an unknown search or start."""
        space = space_of(task)
        search = search_of(options, space)
        search.presampled(presamples_of(space, options.extra.get(PRESAMPLED, "")))
        search.update(known)
        return search

    def build(self, task: Task, candidate: Candidate, rules: MeasuringRules) -> Artifact | Failure:
        """Build one configuration; an exception of the builder is a build error."""
        return stages.build(task, candidate, rules)

    def profile(
        self, task: Task, artifact: Artifact, rules: MeasuringRules, best_s: float | None
    ) -> Measurement | Failure:
        """Run what was built and check its output; an exception of the runner is a run error."""
        return stages.profile(task, artifact, rules, best_s)


class KernelSearch:
    """A search over points, speaking of candidates and trials."""

    def __init__(self, space: Space, search: PointSearch, screens: bool = False) -> None:
        self._space, self.points, self._screens = space, search, screens

    def select(self, count: int) -> list[Candidate]:
        """Up to `count` candidates never proposed before; none: the space is spent."""
        points = self.points.propose(count)
        return [candidate_of(self._space, point, self.points.reason(point)) for point in points]

    def update(self, trials: Sequence[Trial]) -> None:
        """Learn from finished trials; a lost worker says nothing about its configuration."""
        for trial in trials:
            if not trial.lost:
                self._learn(self.point(trial.candidate), trial)

    def _learn(self, point: Point, trial: Trial) -> None:
        """Where builds are looked at by themselves, one that failed is no trial that failed."""
        if self._screens:
            self.points.hear(point, trial.built)
        if trial.built or not self._screens:
            self.points.learn(point, trial.seconds)

    def presampled(self, samples: Sequence[Presample]) -> None:
        """Learn which points build; points that do stay open for running."""
        for sample in samples:
            self.points.hear(sample.point, sample.builds)

    def point(self, candidate: Candidate) -> Point:
        """The point of a candidate; raises SpaceError if it is of another space."""
        try:
            return self._space.point(json.loads(candidate.configuration))
        except ValueError as error:
            raise SpaceError(f"{candidate.configuration[:80]!r} is not a configuration: {error}") from None


def candidate_of(space: Space, point: Point, reason: ProposalReason | None = None) -> Candidate:
    """The candidate of a point, with the reason for which it was proposed."""
    text = json.dumps(space.configuration(point))
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Candidate(key=key, configuration=text, reason=reason)


def search_of(options: SearchOptions, space: Space) -> KernelSearch:
    """The search that the options ask for; raises InputError for an unknown search or start."""
    name = options.extra.get("init", StartingPoint.VALIDITY)
    if name not in list(StartingPoint):
        raise SpaceError(f"no start {name!r}; known: {', '.join(StartingPoint)}")
    screens = options.extra.get("presample") == "yes"
    terms = Terms(options.seed, StartingPoint(name), options.trials, screens=screens)
    search = new_search(options.extra.get("search", "guided"), space, terms)
    return KernelSearch(space, search, screens)


def presamples_of(space: Space, text: str) -> list[Presample]:
    """A JSON list of knobs and whether they build, as points of this space."""
    return [Presample(space.point(values), bool(builds)) for values, builds in json.loads(text or "[]")]
