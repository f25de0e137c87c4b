"""Several implementers of one kernel, searched side by side: trials go where the next gain is expected."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf

from tuneloom.backends.finding import backend_of
from tuneloom.model import Candidate, Search, SearchOptions, Seed, Task, Trial
from tuneloom.model.space import TVM, implementer_of
from tuneloom.tuners.tvm.inserting import claims_on
from tuneloom.tuners.tvm.lowering.tasks import unpack
from tuneloom.tuners.tvm.search.claimed import ClaimSearch
from tuneloom.tuners.tvm.search.search import TvmSearch, default_candidate

_BEHIND = 1.3
"""A member whose best is so much slower than the best of all gets no more trials ..."""
_TRIED = 8
"""... once it has had so many."""
_FIRST = 4
"""How many of each claim's guesses go before everything else, the first of everybody in front."""
_PATIENCE = 24
"""TVM's schedules, the slowest to propose and to build, wait until the claims had so many trials."""

Member = ClaimSearch | TvmSearch


def open_search(task: Task, options: SearchOptions, known: Sequence[Trial]) -> Search:
    """The search of a task, among all who can make code for its kernel."""
    kernel = unpack(task)
    taken = claims_on(kernel)
    claims = [(one.name, claim) for one, claim in taken if not (options.self_contained and one.requirements)]
    own = replace(options, seeds=tuple(seed for seed in options.seeds if _maker(seed) == TVM))
    if not claims:
        return TvmSearch(task, own, known)
    members = [ClaimSearch(name, claim, task, options) for name, claim in claims]
    backend = backend_of(kernel.target)
    joint = JointSearch(
        lambda: TvmSearch(task, replace(own, seeds=()), ()),
        members,
        default_candidate(kernel),
        alone=backend.claims_alone,
        guesses_first=backend.good_guesses,
    )
    joint.plant(options.seeds)
    joint.update(known)
    return joint


def _maker(seed: Seed) -> str:
    return implementer_of(seed.configuration)


class JointSearch:
    """The search of a task: TVM's schedules and the claims of other implementers.

    TVM's space is opened by `own` when it is first asked for: that takes seconds on some targets. With
    `alone` it is not asked for anything but the default. With `guesses_first` the default, which takes long
    to build and hardly ever wins then, waits for the claims' guesses.
    """

    def __init__(
        self,
        own: Callable[[], TvmSearch],
        claims: Sequence[ClaimSearch],
        default: Candidate,
        *,
        alone: bool = False,
        guesses_first: bool = False,
    ) -> None:
        self._open, self._alone, self._guesses_first = own, alone, guesses_first
        self._claims = {claim.name: claim for claim in claims}
        self._given = {claim.name: 0 for claim in claims}
        self._default: Candidate | None = default
        self._seeds: list[Seed] = []
        self._trials: list[Trial] = []
        self._best_s = inf

    def select(self, count: int) -> list[Candidate]:
        chosen = [] if self._guesses_first else self._defaulted(count)
        chosen += self._seeded(min(1, count - len(chosen)))
        chosen += self._guessed(
            [claim for claim in self._claims.values() if claim.untried], count - len(chosen)
        )
        chosen += self._seeded(count - len(chosen))
        for _ in range(_FIRST):
            early = [claim for claim in self._claims.values() if self._given[claim.name] < _FIRST]
            chosen += self._guessed(early, count - len(chosen))
        chosen += self._defaulted(count - len(chosen))
        for share, member in self._shares(count - len(chosen)):
            chosen += self._from(member, share)
        if self._alone or len(chosen) >= count:
            return chosen
        return chosen + self._from(self._own, count - len(chosen))

    def _defaulted(self, count: int) -> list[Candidate]:
        """The default, unless it was given."""
        chosen = [self._default] if self._default is not None and count > 0 else []
        self._default = self._default if count <= 0 else None
        return chosen

    def _guessed(self, claims: Sequence[ClaimSearch], count: int) -> list[Candidate]:
        """One guess of each of some claims."""
        chosen: list[Candidate] = []
        for claim in claims:
            guess = claim.guess() if len(chosen) < count else None
            if guess is not None:
                self._given[claim.name] += 1
                chosen.append(guess)
        return chosen

    def plant(self, seeds: Sequence[Seed]) -> None:
        if not self._alone:
            self._seeds = [*(seed for seed in seeds if _maker(seed) == TVM), *self._seeds]
        for seed in reversed(seeds):
            if _maker(seed) in self._claims:
                self._claims[_maker(seed)].plant([seed])

    def update(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            name = implementer_of(trial.candidate.configuration)
            if name in self._claims:
                self._given[name] = max(self._given[name], self._claims[name].trials + 1)
                self._claims[name].update([trial])
            elif name == TVM:
                self._learn(trial)

    def _learn(self, trial: Trial) -> None:
        if self._default is not None and trial.candidate.key == self._default.key:
            self._default = None
        self._trials.append(trial)
        self._best_s = min(self._best_s, trial.seconds or inf)
        if "_own" in vars(self):
            self._own.update([trial])

    @cached_property
    def _own(self) -> TvmSearch:
        search = self._open()
        search.skip_default()
        search.update(self._trials)
        return search

    def _seeded(self, count: int) -> list[Candidate]:
        """Seeds that are left, before anything else."""
        chosen: list[Candidate] = []
        for claim in self._claims.values():
            chosen += self._from(claim, min(claim.planted, count - len(chosen)))
        if self._seeds and len(chosen) < count:
            self._own.plant(self._seeds)
            self._seeds = []
        if "_own" in vars(self):
            chosen += self._from(self._own, min(self._own.planted, count - len(chosen)))
        return chosen

    def _from(self, member: Member, count: int) -> list[Candidate]:
        chosen = member.select(count) if count > 0 else []
        if isinstance(member, ClaimSearch):
            self._given[member.name] += len(chosen)
        return chosen

    def _shares(self, count: int) -> list[tuple[int, Member]]:
        """So many trials divided among those who may still win, in proportion to how near each is."""
        if count <= 0:
            return []
        hopeful = self._hopeful()
        total = sum(hopeful.values())
        ranked = sorted(hopeful, key=hopeful.__getitem__, reverse=True)
        given: list[tuple[int, Member]] = []
        for member in ranked:
            share = max(1, round(count * hopeful[member] / total))
            given.append((min(share, count - sum(each for each, _ in given)), member))
        return [(share, member) for share, member in given if share]

    def _hopeful(self) -> dict[Member, float]:
        """Members that may still win, with weights."""
        bests = {claim: claim.best_s for claim in self._claims.values()}
        best = min(self._best_s, *bests.values())
        hopeful: dict[Member, float] = {
            claim: (best / seconds) ** 4 if seconds < inf else 1.0
            for claim, seconds in bests.items()
            if self._given[claim.name] < _TRIED or seconds <= _BEHIND * best
        }
        waited = sum(self._given.values()) >= _PATIENCE
        if self._alone:
            return hopeful or dict.fromkeys(self._claims.values(), 1.0)
        if not hopeful or (waited and (len(self._trials) < _TRIED or self._best_s <= _BEHIND * best)):
            hopeful[self._own] = (best / self._best_s) ** 4 if self._best_s < inf else 1.0
        return hopeful
