"""How long a stage will take, learned from the stages that ended, and how fast hosts are."""

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


class OwnDurations(defaultdict[tuple[str, str], Estimate]):
    """What stages of one job took, by task and kind, and under no task by kind alone."""

    def __init__(self) -> None:
        super().__init__(Estimate)


class Predictions:
    """Durations per job, task and kind.

    Asked in this order: what this job's task did in this kind of stage; the request's
    own prior, corrected by how wrong priors of this kind have been; what the job's
    other tasks did; what all jobs did. None if nothing is known.
    """

    def __init__(self) -> None:
        self._kinds: defaultdict[str, Estimate] = defaultdict(Estimate)
        self._bias: defaultdict[str, Estimate] = defaultdict(Estimate)

    def of(self, request: StageRequest, own: OwnDurations) -> float | None:
        """The expected seconds of this stage."""
        kind = request.kind
        known = own.get((request.task or request.lane, kind))
        if known is not None:
            return known.value
        if request.expected_s is not None:
            bias = self._bias.get(kind)
            return request.expected_s * bias.value if bias is not None else request.expected_s
        known = own.get(("", kind)) or self._kinds.get(kind)
        return None if known is None else known.value

    def of_kind(self, kind: str, own: OwnDurations) -> float:
        """The expected seconds of some stage of this kind; 0 if nothing is known."""
        known = own.get(("", kind)) or self._kinds.get(kind)
        return 0.0 if known is None else known.value

    def learn(self, request: StageRequest, own: OwnDurations, seconds: float) -> None:
        """A stage took this long."""
        kind = request.kind
        own[request.task or request.lane, kind].add(seconds)
        own["", kind].add(seconds)
        self._kinds[kind].add(seconds)
        if request.expected_s:
            self._bias[kind].add(seconds / request.expected_s)


class Speeds:
    """What stages take on a host against what was predicted for them, relative to all hosts.

    Predictions are of a host of average speed. With one host there is nothing to compare.
    """

    def __init__(self) -> None:
        self._ratios: dict[str, Estimate] = {}
        self._sum = 0.0

    def factor(self, host: str) -> float:
        """How many times longer than on an average host a stage takes; 1 while nothing is known."""
        ratio = self._ratios.get(host)
        if ratio is None or len(self._ratios) < 2:
            return 1.0
        return ratio.value * len(self._ratios) / self._sum

    def learn(self, host: str, predicted_s: float, seconds: float) -> None:
        """A stage that was predicted to take so long on an average host took so long there."""
        if predicted_s <= 0 or seconds <= 0:
            return
        ratio = self._ratios.get(host)
        if ratio is None:
            ratio = self._ratios[host] = Estimate()
        self._sum -= ratio.value
        ratio.add(seconds / predicted_s)
        self._sum += ratio.value

    def forget(self, host: str) -> None:
        """A host is gone; should it come back it may be another machine."""
        ratio = self._ratios.pop(host, None)
        if ratio is not None:
            self._sum -= ratio.value
