"""Synchronous: all jobs run the same stage at the same moment, on purpose the worst case."""

from collections import Counter

from tuneloom.scheduling.invariants import require
from tuneloom.scheduling.policies.base import Choice
from tuneloom.scheduling.policies.gates import GatedPolicy
from tuneloom.scheduling.records import Job, Seat, Stage
from tuneloom.scheduling.stages import DeviceDemand, Grant


class Synchronous(GatedPolicy):
    """Starts one stage of every job together and waits until all of them are done.

    It exists to show interference, so its grants are marked shared: each job uses the
    resources as if it were alone, whoever else is on them. Within one job nothing
    overlaps but the parts of one stage, and these keep to the capacity of a resource.

    The published listing works for equal jobs only. Here jobs may differ: a round runs
    the kind of stage that most jobs have next (the oldest decides a draw), the others
    wait for a later round; a job that ends leaves, the rest go on; one that comes joins
    at the next round; a job that is alone runs alone instead of waiting for a second.
    """

    name = "synchronous"
    overlaps = True

    def __init__(self) -> None:
        super().__init__()
        self._round: dict[Job, tuple[str, int]] = {}
        self._held: dict[Job, dict[Stage, Grant]] = {}

    def job_entered(self, job: Job) -> None:
        super().job_entered(job)
        self._held[job] = {}

    def job_left(self, job: Job) -> None:
        super().job_left(job)
        del self._held[job]
        self._round.pop(job, None)

    def started(self, stage: Stage, at_s: float) -> None:
        assert stage.grant is not None
        super().started(stage, at_s)
        self._held[stage.job][stage] = stage.grant

    def ended(self, stage: Stage, at_s: float, *, finished: bool) -> None:
        del self._held[stage.job][stage]
        super().ended(stage, at_s, finished=finished)

    def choose(self, at_s: float) -> Choice | None:
        start = self._next_of_round()
        if start is None and not self._round:
            self._form_round()
            start = self._next_of_round()
        return start

    def check(self) -> None:
        kinds = {stage.request.kind for held in self._held.values() for stage in held}
        require(len(kinds) <= 1, f"one kind of stage runs at a time, not {sorted(kinds)}")
        super().check()

    def _next_of_round(self) -> Choice | None:
        for job, stage_name in list(self._round.items()):
            if self._gates[job].open == stage_name:
                for stage in self._waiting[job]:
                    grant = self._grant_for(stage)
                    if grant is not None:
                        return (stage, grant)
            if not self._held[job]:
                del self._round[job]
        return None

    def _form_round(self) -> None:
        """Pick the kind that most jobs could start now, and those jobs."""
        able = [(job, stage) for job in self._waiting if (stage := self._first_able(job)) is not None]
        if not able:
            return
        votes = Counter(stage.request.kind for _, stage in able)
        most = max(votes.values())
        tied = [(stage.seq, stage.request.kind) for _, stage in able if votes[stage.request.kind] == most]
        kind = min(tied)[1]
        for job, stage in able:
            if stage.request.kind == kind:
                self._round[job] = (stage.request.lane, stage.request.step)

    def _first_able(self, job: Job) -> Stage | None:
        return next((stage for stage in self._waiting[job] if self._grant_for(stage) is not None), None)

    def _grant_for(self, stage: Stage) -> Grant | None:
        """The least crowded resource on which this job itself has room."""
        needs = stage.request.needs
        if isinstance(needs, DeviceDemand):
            seats = list(self._floor.devices.get(needs.key, {}).values())
        elif needs.host is None:
            seats = list(self._floor.hosts.values())
        else:
            seats = [self._floor.hosts[needs.host]] if needs.host in self._floor.hosts else []
        slots = 1 if isinstance(needs, DeviceDemand) else needs.slots
        roomy = [seat for seat in seats if self._used(stage.job, seat) + slots <= seat.slots]
        seat = min(roomy, key=lambda seat: (seat.taken / seat.slots, seat.order), default=None)
        return None if seat is None else Grant(resource=seat.name, slots=slots, shared=True)

    def _used(self, job: Job, seat: Seat) -> int:
        return sum(grant.slots for grant in self._held[job].values() if grant.resource == seat.name)
