"""Fair shares: virtual time per pool of resources, and what priority and deadline are worth in it."""

from dataclasses import dataclass, field

from tuneloom.scheduling.policies.predictions import Estimate
from tuneloom.scheduling.records import Job, Stage

StageName = tuple[str, int]

LEVEL_STAGES = 16
"""A level of priority is worth at least this many average stages of its pool."""

CHAIN_STAGES = 48
"""A chain that will outlast everything else is worth this many average stages of its pool."""

TIME_PASSES = 0.5
"""How much of what a chain is forgiven counts as time passed for all others."""


@dataclass(slots=True)
class Account:
    """What one job has used of each pool, in seconds of service by weight.

    `stages` holds a tag and the number of parts that wait or run. All parts of a stage
    carry the tag that its first part got, so that a batch stays together instead of
    being dealt out among jobs.
    """

    job: Job
    used: dict[str, float] = field(default_factory=dict)
    stages: dict[StageName, tuple[float, int]] = field(default_factory=dict)


class FairShares:
    """Start-time fair queueing with ageing.

    A pool's virtual time follows the tags of the stages whose turn it was. A stage gets
    the later of that, less half a level for jobs that were here before, and its job's
    own account as its tag; serving it charges the account with its seconds divided by
    the job's weight. One level of priority is worth `ageing_s` of virtual time, or
    LEVEL_STAGES average stages if that is more: while a stage waits, the tags of its
    rivals grow past it, so it is served at the latest when each rival has had that much
    a level more than it. A deadline is worth up to one level, the more of it the less
    slack was left when the stage became ready. A chain that will outlast everything else
    is worth CHAIN_STAGES average stages, and forgiven for being ahead; time passes for
    those who wait behind it all the same.
    """

    def __init__(self, ageing_s: float) -> None:
        self._ageing_s = ageing_s
        self._virtual: dict[str, float] = {}
        self._service: dict[str, Estimate] = {}
        self._levels: dict[str, float] = {}
        self._chain_s: dict[str, float] = {}

    def tag(self, account: Account, pool: str, stage: Stage, chain: float) -> float:
        """The tag of a stage that starts to wait; call once a part.

        A job that is ahead of its share is forgiven as much of it as its chain weighs.
        """
        name = (stage.request.lane, stage.request.step)
        known = account.stages.get(name)
        if known is not None:
            account.stages[name] = (known[0], known[1] + 1)
            return known[0]
        tag, used = self._virtual.get(pool, 0.0), account.used.get(pool)
        if used is not None:
            ahead_s = used - tag
            if ahead_s > 0:
                tag = self._forgive(pool, tag, ahead_s, chain)
            else:
                tag += max(ahead_s, -self.level_s(pool) / 2)
            account.used[pool] = tag
        account.stages[name] = (tag, 1)
        return tag

    def _forgive(self, pool: str, now: float, ahead_s: float, chain: float) -> float:
        """Forget what a chain is ahead, but let time pass for those who wait meanwhile.

        So they come nearer to their turn with every stage that went before them, and wait
        at the most until they have come nearer by what a chain is worth.
        """
        forgiven_s = ahead_s * chain
        if forgiven_s:
            self._virtual[pool] = now = now + forgiven_s * TIME_PASSES
        return now + ahead_s - forgiven_s

    def drop(self, account: Account, stage: Stage) -> None:
        """A part neither waits nor runs any more."""
        name = (stage.request.lane, stage.request.step)
        tag, parts = account.stages.pop(name)
        if parts > 1:
            account.stages[name] = (tag, parts - 1)

    def level_s(self, pool: str) -> float:
        """What one level of priority is worth now in this pool's virtual time."""
        return self._levels.get(pool, self._ageing_s)

    def chain_s(self, pool: str) -> float:
        """What a chain that outlasts all others is worth now in this pool's virtual time."""
        return self._chain_s.get(pool, self._ageing_s)

    def rank(self, account: Account, pool: str, tag: float, stage: Stage, at_s: float, chain: float) -> float:
        """The tag with priority, deadline and the weight of the job's chain (0 to 1) counted in."""
        ticket = account.job.ticket
        worth_s = self.chain_s(pool) * chain
        if ticket.deadline_s is not None:
            urgency = self._urgency(pool, ticket.deadline_s, stage, at_s)
            worth_s = max(worth_s, self.level_s(pool) * urgency)
        if ticket.priority:
            worth_s += self.level_s(pool) * ticket.priority
        return tag - worth_s

    def turn(self, pool: str, tag: float) -> None:
        """It was the turn of a stage with this tag, whether or not it was served."""
        if tag > self._virtual.get(pool, 0.0):
            self._virtual[pool] = tag

    def charge(self, account: Account, pool: str, tag: float, service_s: float) -> None:
        """A stage with this tag starts and is expected to use this much."""
        used = account.used.get(pool, 0.0)
        account.used[pool] = (used if used > tag else tag) + service_s / account.job.ticket.weight

    def settle(self, account: Account, pool: str, charged_s: float, service_s: float) -> None:
        """A stage that was charged for so much used so much."""
        service = self._service.get(pool)
        if service is None:
            service = self._service[pool] = Estimate()
        service.add(service_s)
        self._chain_s[pool] = CHAIN_STAGES * service.value
        self._levels[pool] = max(self._ageing_s, LEVEL_STAGES * service.value)
        difference_s = service_s - charged_s
        account.used[pool] = account.used.get(pool, 0.0) + difference_s / account.job.ticket.weight

    def _urgency(self, pool: str, deadline_s: float, stage: Stage, at_s: float) -> float:
        """1 without slack, a half with a level of it, near 0 with all the time in the world."""
        slack_s = deadline_s - at_s - (stage.request.remaining_s or 0.0)
        level_s = self.level_s(pool)
        return level_s / (level_s + max(0.0, slack_s))
