"""Fair shares: virtual time per pool of resources, and what priority and deadline are worth in it."""

from dataclasses import dataclass, field

from tuneloom.scheduling.policies.load_aware.predictions import Estimate
from tuneloom.scheduling.records import Job, Stage

StageName = tuple[str, int]

LEVEL_STAGES = 16
"""A level of priority is worth at least this many average stages of its pool."""

CHAIN_STAGES = 48
"""A chain that will outlast everything else is worth this many average stages of its pool."""

TIME_PASSES = 0.25
"""How much of what a chain is forgiven counts as time passed for all others."""


@dataclass(slots=True)
class Account:
    """What one job has used of each pool, in seconds of service by weight; jobs of a share use up one.

    `stages` holds a tag and the number of parts that wait or run. All parts of a stage
    carry the tag that its first part got, so that a batch stays together instead of
    being dealt out among jobs. `steps` counts the stages that ever waited.
    """

    job: Job
    used: dict[str, float] = field(default_factory=dict)
    stages: dict[StageName, tuple[float, int]] = field(default_factory=dict)
    steps: int = 0

    def drop(self, stage: Stage) -> None:
        """A part neither waits nor runs any more."""
        name = (stage.request.lane, stage.request.step)
        tag, parts = self.stages.pop(name)
        if parts > 1:
            self.stages[name] = (tag, parts - 1)


class Pool:
    """Start-time fair queueing with ageing, for all host slots or for the devices of one key.

    Virtual time follows the tags of the stages whose turn it was. A stage gets the later
    of that, less half a level for jobs that were here before, and its job's own account
    as its tag; serving it charges the account with its seconds divided by the job's
    weight. One level of priority is worth `ageing_s` of virtual time, or LEVEL_STAGES
    average stages if that is more: while a stage waits, the tags of its rivals grow past
    it, so it is served at the latest when each rival has had that much a level more than
    it. A deadline is worth up to one level, the more of it the less slack was left when
    the stage became ready. A chain that will outlast everything else is worth
    CHAIN_STAGES average stages, and forgiven for being ahead; time passes for those who
    wait behind it all the same. A stage is counted with all its parts.
    """

    __slots__ = ("_ageing_s", "_parts", "_service", "_stages", "_virtual_s", "chain_s", "level_s", "name")

    def __init__(self, name: str, ageing_s: float) -> None:
        self.name = name
        self.level_s = ageing_s
        self.chain_s = ageing_s
        self._ageing_s = ageing_s
        self._virtual_s = 0.0
        self._service = Estimate()
        self._parts = 0
        self._stages = 0

    def tag(self, account: Account, stage: Stage, chain: float) -> float:
        """The tag of a stage that starts to wait; call once a part.

        A job that is ahead of its share is forgiven as much of it as its chain weighs.
        """
        self._parts += 1
        name = (stage.request.lane, stage.request.step)
        known = account.stages.get(name)
        if known is not None:
            account.stages[name] = (known[0], known[1] + 1)
            return known[0]
        self._stages += 1
        account.steps += 1
        tag = self._fresh_tag(account, chain)
        account.stages[name] = (tag, 1)
        return tag

    def _fresh_tag(self, account: Account, chain: float) -> float:
        used, tag = account.used.get(self.name), self._virtual_s
        if used is None:
            return tag
        ahead_s = used - tag
        if ahead_s > 0:
            tag = self._forgive(ahead_s, chain)
        else:
            floor_s = -self.level_s / 2
            tag += ahead_s if ahead_s > floor_s else floor_s
        account.used[self.name] = tag
        return tag

    def _forgive(self, ahead_s: float, chain: float) -> float:
        """Forget what a chain is ahead, but let time pass for those who wait meanwhile.

        So they come nearer to their turn with every stage that went before them, and wait
        at the most until they have come nearer by what a chain is worth.
        """
        forgiven_s = ahead_s * chain
        self._virtual_s += forgiven_s * TIME_PASSES
        return self._virtual_s + ahead_s - forgiven_s

    def rank(self, account: Account, tag: float, stage: Stage, at_s: float, chain: float) -> float:
        """The tag with priority, deadline and the weight of the job's chain (0 to 1) counted in."""
        ticket = account.job.ticket
        worth_s = self.chain_s * chain
        if ticket.deadline_s is not None:
            slack_s = ticket.deadline_s - at_s - (stage.request.remaining_s or 0.0)
            worth_s = max(worth_s, self._urgency(slack_s) * self.level_s)
        return tag - worth_s - self.level_s * ticket.priority

    def _urgency(self, slack_s: float) -> float:
        """1 without slack, a half with a level of it, near 0 with all the time in the world."""
        return self.level_s / (self.level_s + max(0.0, slack_s))

    def turn(self, tag: float) -> None:
        """It was the turn of a stage with this tag, whether or not it was served."""
        if tag > self._virtual_s:
            self._virtual_s = tag

    def charge(self, account: Account, tag: float, service_s: float) -> None:
        """A stage with this tag starts and is expected to use this much."""
        used = account.used.get(self.name, 0.0)
        account.used[self.name] = (used if used > tag else tag) + service_s / account.job.ticket.weight

    def settle(self, account: Account, charged_s: float, service_s: float) -> None:
        """A stage that was charged for so much used so much."""
        self._service.add(service_s)
        stage_s = self._service.value * self._parts / self._stages
        self.chain_s = CHAIN_STAGES * stage_s
        level_s = LEVEL_STAGES * stage_s
        self.level_s = level_s if level_s > self._ageing_s else self._ageing_s
        account.used[self.name] += (service_s - charged_s) / account.job.ticket.weight
