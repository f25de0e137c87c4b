"""Several implementers of one kernel, searched side by side: trials go where the next gain is expected."""

from collections.abc import Sequence
from dataclasses import replace

from tuneloom.model import Candidate, Search, SearchOptions, Seed, Task, Trial
from tuneloom.model.configuration import TVM, implementer_of
from tuneloom.tuners.tvm.inserting import claims_on
from tuneloom.tuners.tvm.lowering.tasks import unpack
from tuneloom.tuners.tvm.search.claimed import ClaimSearch
from tuneloom.tuners.tvm.search.search import TvmSearch

_BEHIND = 1.3
"""A claim whose best is so much slower than the best of all gets no more trials ..."""
_TRIED = 8
"""... once it has had so many."""
_FIRST = 4
"""How many of each claim's guesses go before everything else."""


def open_search(task: Task, options: SearchOptions, known: Sequence[Trial]) -> Search:
    """The search of a task, among all who can make code for its kernel."""
    taken = claims_on(unpack(task))
    claims = [(one.name, claim) for one, claim in taken if not (options.self_contained and one.requirements)]
    own = replace(options, seeds=tuple(seed for seed in options.seeds if _maker(seed) == TVM))
    if not claims:
        return TvmSearch(task, own, known)
    members = [ClaimSearch(name, claim, task, options) for name, claim in claims]
    joint = JointSearch(TvmSearch(task, own, ()), members)
    joint.plant([seed for seed in options.seeds if _maker(seed) != TVM])
    joint.update(known)
    return joint


def _maker(seed: Seed) -> str:
    return implementer_of(seed.configuration)


class JointSearch:
    """The search of a task: TVM's schedules and the claims of other implementers."""

    def __init__(self, own: TvmSearch, claims: Sequence[ClaimSearch]) -> None:
        self._own, self._claims = own, {claim.name: claim for claim in claims}
        self._own_trials, self._own_best_s = 0, float("inf")
        self._given = {claim.name: 0 for claim in claims}

    def select(self, count: int) -> list[Candidate]:
        first = min(count, self._own.planted + (not self._own_trials))
        chosen = self._own.select(first)
        self._own_trials += len(chosen)
        for claim in self._claims.values():
            chosen += self._from(claim, min(claim.planted, count - len(chosen)))
        for claim in self._claims.values():
            wanted = min(claim.guesses, _FIRST - self._given[claim.name], count - len(chosen))
            chosen += self._from(claim, max(0, wanted))
        for share, member in self._shares(count - len(chosen)):
            chosen += self._from(member, share)
        if len(chosen) < count:
            chosen += self._own.select(count - len(chosen))
        return chosen

    def plant(self, seeds: Sequence[Seed]) -> None:
        for seed in reversed(seeds):
            if _maker(seed) == TVM:
                self._own.plant([seed])
            elif _maker(seed) in self._claims:
                self._claims[_maker(seed)].plant([seed])

    def update(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            name = implementer_of(trial.candidate.configuration)
            if name == TVM:
                self._own_trials += 1
                self._own_best_s = min(self._own_best_s, trial.seconds or float("inf"))
                self._own.update([trial])
            elif name in self._claims:
                self._claims[name].update([trial])

    def _from(self, member: ClaimSearch | TvmSearch, count: int) -> list[Candidate]:
        chosen = member.select(count)
        if isinstance(member, ClaimSearch):
            self._given[member.name] += len(chosen)
        return chosen

    def _shares(self, count: int) -> list[tuple[int, ClaimSearch | TvmSearch]]:
        """So many trials divided among those who may still win, in the proportion of how near each is."""
        if count <= 0:
            return []
        bests = {claim: claim.best_s or float("inf") for claim in self._claims.values()}
        best = min(self._own_best_s, *bests.values())
        hopeful: dict[ClaimSearch | TvmSearch, float] = {
            claim: (best / seconds) ** 4 if seconds < float("inf") else 1.0
            for claim, seconds in bests.items()
            if self._given[claim.name] < _TRIED or seconds <= _BEHIND * best
        }
        if self._own_best_s <= _BEHIND * best or self._own_trials < _TRIED or not hopeful:
            hopeful[self._own] = (best / self._own_best_s) ** 4 if self._own_best_s < float("inf") else 1.0
        total = sum(hopeful.values())
        ranked = sorted(hopeful, key=hopeful.__getitem__, reverse=True)
        shares = [max(1, round(count * hopeful[member] / total)) for member in ranked]
        left, given = count, []
        for share, member in zip(shares, ranked, strict=True):
            given.append((min(share, left), member))
            left -= given[-1][0]
        return [(share, member) for share, member in given if share]
