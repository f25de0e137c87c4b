"""The search of one claim: the implementer's own guesses first, then the search of hand-written kernels."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from math import inf

import numpy as np

from tuneloom.backends.implementers import Claim, Configuration, Knobs
from tuneloom.errors import SpaceError
from tuneloom.model import Candidate, SearchOptions, Seed, Task, Trial
from tuneloom.model.space import configured, values_in
from tuneloom.tuners.kernel.search.searches import new_search
from tuneloom.tuners.kernel.search.terms import StartingPoint, Terms
from tuneloom.tuners.kernel.space import Space

_MOST_LISTED = 20_000
_DRAWN = 60_000
GUESS_ORIGIN = "guess"


class ClaimSearch:
    """Proposes configurations of one implementer; deterministic per seed and history."""

    def __init__(self, name: str, claim: Claim, task: Task, options: SearchOptions) -> None:
        self.name, self._claim, self._payload = name, claim, task.payload
        rows = _allowed(claim, options.seed)
        self._guesses = [dict(one) for one in claim.space.guesses if not claim.refusal(one)]
        self._all_guesses = len(self._guesses)
        rows += [one for one in self._guesses if one not in rows]
        names = list(claim.space.knobs)
        self._space = Space.of_rows(names, [[row[knob] for knob in names] for row in rows])
        self._points = new_search(
            "guided", self._space, Terms(options.seed, StartingPoint.VALIDITY, options.trials)
        )
        self._seeds: list[Seed] = []
        self._proposed: set[str] = set()
        self._only_seeds = options.only_seeds
        self.best_s = inf
        self.trials = 0

    @property
    def guesses(self) -> int:
        """How many of its own guesses are left to try."""
        return 0 if self._only_seeds else len(self._guesses)

    @property
    def untried(self) -> bool:
        """Whether the first of its guesses is left to try."""
        return self.guesses == self._all_guesses

    @property
    def planted(self) -> int:
        """How many seeds are left to try."""
        return len(self._seeds)

    def select(self, count: int) -> list[Candidate]:
        chosen: list[Candidate] = []
        while len(chosen) < count and (candidate := self._next()) is not None:
            chosen.append(candidate)
        return chosen

    def guess(self) -> Candidate | None:
        """The next of its own guesses; None if none is left."""
        candidate = None
        while candidate is None and self.guesses:
            candidate = self._candidate(self._guesses.pop(0), GUESS_ORIGIN)
        return candidate

    def plant(self, seeds: Sequence[Seed]) -> None:
        self._seeds = [*seeds, *self._seeds]

    def update(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            configuration = trial.candidate.configuration
            self._proposed.add(configuration)
            self.trials += 1
            self.best_s = min(self.best_s, trial.seconds or inf)
            point = self._point(configuration)
            if point is not None and not trial.lost:
                self._points.learn(point, trial.seconds)

    def _next(self) -> Candidate | None:
        while self._seeds:
            candidate = self._candidate(
                self._nearest(self._seeds[0].configuration), self._seeds.pop(0).origin
            )
            if candidate is not None:
                return candidate
        candidate = self.guess()
        if candidate is not None:
            return candidate
        for point in iter(lambda: [] if self._only_seeds else self._points.propose(1), []):
            candidate = self._candidate(_whole(self._space.configuration(point[0])), "search")
            if candidate is not None:
                return replace(candidate, reason=self._points.reason(point[0]))
        return None

    def _candidate(self, values: Configuration | None, origin: str) -> Candidate | None:
        text = "" if values is None else configured(self.name, values)
        if not text or text in self._proposed:
            return None
        self._proposed.add(text)
        key = hashlib.sha256(text.encode()).hexdigest()[:20]
        return Candidate(key=key, configuration=text, payload=self._payload, origin=origin)

    def _point(self, configuration: str) -> tuple[int, ...] | None:
        try:
            return self._space.point(values_in(configuration))
        except (SpaceError, ValueError):
            return None

    def _nearest(self, configuration: str) -> Configuration | None:
        """A configuration itself, or of another kernel the allowed one that differs in the fewest steps."""
        try:
            values = values_in(configuration)
        except ValueError:
            return None
        knobs = self._claim.space.knobs
        if set(values) < set(knobs) and self._claim.space.guesses:  # a record from before there was a knob
            values = {**self._claim.space.guesses[0], **values}
        if set(values) != set(self._space.names):
            return None
        if all(values[name] in knobs[name] for name in knobs) and not self._claim.refusal(values):
            return _whole(values)  # also where only a part of the space was listed
        return next((near for near in self._by_distance(values) if not self._claim.refusal(near)), None)

    def _by_distance(self, values: Configuration) -> Iterator[Configuration]:
        """The configurations of the space, those first that differ from these values in the fewest steps."""
        points = self._space.points()
        away = np.zeros(len(points))
        for column, (name, choices) in enumerate(self._space.knobs.items()):
            place = min(range(len(choices)), key=lambda n: abs(float(choices[n]) - float(values[name])))
            away += np.abs(points[:, column] - place)
        yield from (_whole(self._space.configuration(points[n])) for n in np.argsort(away, kind="stable"))


def _allowed(claim: Claim, seed: int) -> list[Configuration]:
    """What the search may propose, or a part of it where there is too much to list."""
    knobs = claim.space.knobs
    total = int(np.prod([float(len(values)) for values in knobs.values()]))
    rows = _every(claim) if total <= _DRAWN else _drawn(claim, seed)
    learned = isinstance(claim.space, Knobs) and claim.space.learned
    return list(islice((row for row in rows if learned or not claim.refusal(row)), _MOST_LISTED))


def _every(claim: Claim) -> Iterator[Configuration]:
    knobs = claim.space.knobs
    for values in product(*knobs.values()):
        yield dict(zip(knobs, values, strict=True))


def _drawn(claim: Claim, seed: int) -> Iterator[Configuration]:
    random, knobs = np.random.default_rng([seed, 71]), claim.space.knobs
    for _ in range(_DRAWN):
        yield {name: values[int(random.integers(len(values)))] for name, values in knobs.items()}


def _whole(values: object) -> Configuration:
    assert isinstance(values, dict)
    return {str(name): int(value) for name, value in values.items()}
