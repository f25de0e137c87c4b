"""How long a stage will take, learned from the stages that ended."""

from collections import defaultdict

from tuneloom.scheduling.stages import StageRequest

MEMORY = 8
OUTLIER = 4.0


class Estimate:
    """A running mean that forgets slowly and that no single outlier can move far.

    The first sample counts as it is; a later one is drawn towards the mean until it
    lies within a factor of OUTLIER of it, so a lasting change of ten times is followed
    within a few samples and one hanging stage is not.
    """

    __slots__ = ("count", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.count = 0

    def add(self, sample: float) -> None:
        """Learn from one observation."""
        value, count = self.value, self.count
        if count < MEMORY:
            self.count = count = count + 1
        if count == 1:
            self.value = sample
            return
        if sample * OUTLIER < value:
            sample = value / OUTLIER
        elif sample > value * OUTLIER and value > 0:
            sample = value * OUTLIER
        self.value = value + (sample - value) / count


class Predictions:
    """Durations per job, task and kind.

    Asked in this order: what this job's task did in this kind of stage; the request's
    own prior, corrected by how wrong priors of this kind have been; what the job's
    other tasks did; what all jobs did. None if nothing is known.
    """

    def __init__(self) -> None:
        self._own: dict[str, defaultdict[tuple[str, str], Estimate]] = {}
        self._kinds: defaultdict[str, Estimate] = defaultdict(Estimate)
        self._bias: defaultdict[str, Estimate] = defaultdict(Estimate)

    def of(self, request: StageRequest) -> float | None:
        """The expected seconds of this stage."""
        kind = request.kind
        own = self._own.get(request.job)
        if own is not None:
            known = own.get((request.task or request.lane, kind))
            if known is not None:
                return known.value
        if request.expected_s is not None:
            bias = self._bias.get(kind)
            return request.expected_s * bias.value if bias is not None else request.expected_s
        known = own.get(("", kind)) if own is not None else None
        if known is None:
            known = self._kinds.get(kind)
        return None if known is None else known.value

    def of_kind(self, job: str, kind: str) -> float:
        """The expected seconds of some stage of this kind; 0 if nothing is known."""
        own = self._own.get(job)
        known = own.get(("", kind)) if own is not None else None
        if known is None:
            known = self._kinds.get(kind)
        return 0.0 if known is None else known.value

    def learn(self, request: StageRequest, seconds: float) -> None:
        """A stage took this long."""
        own = self._own.get(request.job)
        if own is None:
            own = self._own[request.job] = defaultdict(Estimate)
        kind = request.kind
        own[request.task or request.lane, kind].add(seconds)
        own["", kind].add(seconds)
        self._kinds[kind].add(seconds)
        if request.expected_s:
            self._bias[kind].add(seconds / request.expected_s)

    def forget(self, job: str) -> None:
        """Drop what is only of use to this job."""
        self._own.pop(job, None)
