"""The search of one TVM task: a cost model on decisions, evolution, and few replays.

Stock evolutionary search replays thousands of traces for each batch; replaying is what
its time goes into. Here configurations evolve as rows of numbers and only those that
are about to be measured are replayed.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tuneloom.backends.finding import backend_of
from tuneloom.backends.implementers import ModelKernel
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import tvm_ffi
from tuneloom.model import Candidate, SearchOptions, Seed, Task, Trial
from tuneloom.tuners.tvm.lowering.payloads import NO_TRACE, pack_kernel, trace_text
from tuneloom.tuners.tvm.lowering.tasks import unpack
from tuneloom.tuners.tvm.search.opening import is_template, opened
from tuneloom.tuners.tvm.search.plausibility import Plausibility
from tuneloom.tuners.tvm.search.population import Population, Row
from tuneloom.tuners.tvm.search.seeding import history, lesson_rows, own_rows, replayed, row_at
from tuneloom.tuners.tvm.search.sketches import decisions_in, key_of, sketch_of
from tuneloom.tuners.tvm.search.surrogate import Surrogate
from tuneloom.tuners.tvm.search.validity import TrialValidity

DEFAULT_ORIGIN = "default"
GUESS_ORIGIN = "guess"
_POOL = 512
_GENERATIONS = 6
_RANDOM_SHARE = 0.1
_MIN_TO_LEARN = 16
_CHUNK = 64  # rows replayed before what they taught is used
_LOOKS = 8
_REPLAYS = 600
_REPLAYS_EACH = 20


class TvmSearch:
    """Proposes schedules of one kernel; deterministic per seed and history."""

    def __init__(self, task: Task, options: SearchOptions, known: Sequence[Trial]) -> None:
        load_tvm()
        kernel = unpack(task)
        self._kernel = kernel
        self._module = kernel.module
        self._target = kernel.target
        context, schedules = opened(kernel)
        self._context = context
        self._postprocs = list(context.space_generator.postprocs)
        self._sketches = [sketch_of(schedule.trace) for schedule in schedules]
        self._random = np.random.default_rng(options.seed)
        self._population = Population(self._sketches, self._random)
        self._surrogate = Surrogate(options.seed)
        self._seconds: dict[Row, float] = {}
        self._proposed: set[Row] = set()
        self._survivors: list[Row] = []
        self._plausibility = Plausibility(options.seed)
        self._validity = TrialValidity(options.seed)
        self._programs: set[int] = set()
        self._keys: set[str] = set()
        self._seeds = list(options.seeds)
        own = is_template(context.space_generator)
        self._guesses = own_rows(self._sketches) if own else []
        self._plain_guess = (
            None if own else backend_of(kernel.target).first_guess(kernel.module, kernel.target)
        )
        self._only_seeds = options.only_seeds
        self._lessons = lesson_rows(self._sketches, options.lessons)
        self._stale = bool(self._lessons)
        self.update(known)

    def select(self, count: int) -> list[Candidate]:
        self._learn()
        chosen: list[Candidate] = []
        if not self._keys:
            chosen.append(default_candidate(self._kernel))
            self.skip_default()
        chosen += self._planted(count - len(chosen))
        chosen += self._guessed(count - len(chosen))
        if self._only_seeds or len(chosen) >= count:
            return chosen
        return chosen + self._searched(count - len(chosen))

    @property
    def planted(self) -> int:
        """How many seeds are left to try."""
        return len(self._seeds)

    def plant(self, seeds: Sequence[Seed]) -> None:
        self._seeds = [*seeds, *self._seeds]

    def _searched(self, count: int) -> list[Candidate]:
        """Up to so many new candidates; fewer when the space, or patience, is spent."""
        chosen: list[Candidate] = []
        replays = 0
        while len(chosen) < count and replays < _REPLAYS_EACH * count + _REPLAYS:
            rows = self._next_rows(count)
            if not rows:
                break
            for row in rows:
                candidate = None if row in self._proposed else self._candidate(row)
                if candidate is not None:
                    chosen.append(candidate)
                if len(chosen) >= count:
                    break
            replays += len(rows)
            self._plausibility.learn()
        return chosen

    def update(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            self._keys.add(trial.candidate.key)
            row = self._row_of(trial.candidate.configuration)
            if row is not None:
                self._proposed.add(row)
                self._validity.take_in(self._population.encode([row])[0], trial)
                self._seconds[row] = trial.seconds if trial.seconds is not None else math.inf
                self._stale = True

    def _row_of(self, configuration: str) -> Row | None:
        try:
            return self._population.row(*decisions_in(configuration))
        except ValueError:
            return None

    def _planted(self, count: int) -> list[Candidate]:
        """Up to so many of the seeds that are left; those that don't fit are dropped."""
        chosen: list[Candidate] = []
        while self._seeds and len(chosen) < count:
            candidate = self._from_seed(self._seeds.pop(0))
            if candidate is not None:
                chosen.append(candidate)
        return chosen

    def _guessed(self, count: int) -> list[Candidate]:
        """Up to so many of the templates' own guesses that are left; without one, a plain default."""
        chosen: list[Candidate] = []
        if self._plain_guess is not None and count > 0:
            guess, self._plain_guess = self._wrap(self._plain_guess, GUESS_ORIGIN), None
            chosen += [] if guess is None else [guess]
        while self._guesses and len(chosen) < count:
            row = self._guesses.pop(0)
            candidate = None if row in self._proposed else self._candidate(row, GUESS_ORIGIN)
            if candidate is not None:
                chosen.append(candidate)
        return chosen

    def _from_seed(self, seed: Seed) -> Candidate | None:
        if seed.sketch is None:
            schedule = replayed(self._module, seed.configuration)
            return None if schedule is None else self._wrap(schedule, seed.origin)
        row = row_at(self._sketches, seed.sketch, seed.decisions)
        return None if row is None or row in self._proposed else self._candidate(row, seed.origin)

    def _learn(self) -> None:
        known = history(self._seconds, self._lessons)
        good = sum(math.isfinite(s) for s in known.values())
        if self._stale and good >= _MIN_TO_LEARN:
            self._surrogate.fit(self._population.encode(list(known)), np.asarray(list(known.values())))
            self._stale = False

    def _next_rows(self, count: int) -> list[Row]:
        """Rows worth replaying, best first, with some chance mixed in; none when nothing new is found."""
        for _ in range(_LOOKS):
            fresh = [row for row in self._evolved() if row not in self._proposed]
            lucky = [row for row in self._population.sample(2 * count) if row not in self._proposed]
            if fresh or lucky:
                return list(self._mixed(fresh, lucky))[: max(2 * count, _CHUNK)]
        return []

    def _mixed(self, fresh: list[Row], lucky: list[Row]) -> Iterator[Row]:
        best, chance = iter(fresh), iter(lucky)
        for _ in range(len(fresh) + len(lucky)):
            source = (chance, best) if self._random.random() < _RANDOM_SHARE else (best, chance)
            row = next(source[0], None) or next(source[1], None)
            if row is None:
                return
            if row not in self._proposed:
                yield row

    def _evolved(self) -> list[Row]:
        """Rows by predicted score, best first; plausible ones while nothing is learned."""
        if not self._surrogate.trained:
            return self._plausible()
        elite = sorted(self._seconds, key=self._seconds.__getitem__)[: _POOL // 8]
        taught = sorted(self._lessons, key=self._lessons.__getitem__)[: _POOL // 8]
        pool = list(dict.fromkeys(elite + taught + self._population.sample(_POOL // 2)))
        seen = dict(zip(pool, self._score(pool), strict=True))
        for _ in range(_GENERATIONS):
            parents = sorted(seen, key=seen.__getitem__, reverse=True)[: _POOL // 4]
            children = {self._child(parents) for _ in range(_POOL)} - seen.keys()
            born = sorted(children)
            seen.update(zip(born, self._score(born), strict=True))
        return sorted(seen, key=seen.__getitem__, reverse=True)[:_POOL]

    def _plausible(self) -> list[Row]:
        """Random rows and neighbours of survivors, the likeliest to survive first."""
        near = [self._population.mutate(row) for row in self._survivors[-_POOL // 4 :] for _ in range(4)]
        rows = list(dict.fromkeys(self._population.sample(_POOL) + near))
        if not self._survivors:
            return rows
        features = self._population.encode(rows)
        odds = self._plausibility.probability(features) * self._validity.probability(features)
        if self._validity.failing:
            return [rows[i] for i in self._validity.apart(features, odds)]
        return [rows[i] for i in np.argsort(-odds, kind="stable")]

    def _child(self, parents: list[Row]) -> Row:
        one = parents[int(len(parents) * self._random.random() ** 2)]
        if self._random.random() < 0.3:
            one = self._population.cross(one, parents[int(self._random.integers(len(parents)))])
        return self._population.mutate(one)

    def _score(self, rows: list[Row]) -> list[float]:
        if not rows:
            return []
        features = self._population.encode(rows)
        odds = self._plausibility.probability(features) * self._validity.probability(features)
        scores = self._surrogate.predict(features) * odds
        return [float(score) for score in scores]

    def _candidate(self, row: Row, origin: str = "search") -> Candidate | None:
        self._proposed.add(row)
        sketch = self._sketches[row[0]]
        schedule = sketch.replay(self._module, self._population.decisions(row), self._postprocs)
        self._plausibility.observe(self._population.encode([row])[0], schedule is not None)
        if schedule is None:
            return None
        self._survivors.append(row)
        return self._wrap(schedule, origin)

    def skip_default(self) -> None:
        """Leave the default schedule to somebody else."""
        self._keys.add(key_of(NO_TRACE))

    def _wrap(self, schedule: Any, origin: str) -> Candidate | None:
        program = tvm_ffi.structural_hash(schedule.mod)
        text = trace_text(schedule.trace)
        key = key_of(text)
        if program in self._programs or key in self._keys:
            return None
        self._programs.add(program)
        self._keys.add(key)
        payload = pack_kernel(schedule.mod, self._target)
        return Candidate(key=key, configuration=text, payload=payload, origin=origin)


def default_candidate(kernel: ModelKernel) -> Candidate:
    """The kernel as it runs when nobody tuned it."""
    module = backend_of(kernel.target).default_module(kernel.module, kernel.target)
    payload = pack_kernel(module, kernel.target, kernel.meaning)
    return Candidate(key=key_of(NO_TRACE), configuration=NO_TRACE, payload=payload, origin=DEFAULT_ORIGIN)
