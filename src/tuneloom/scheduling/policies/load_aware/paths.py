"""Where a job's stages lead: which kind follows which, and how far the next device is."""

from dataclasses import dataclass, field

from tuneloom.scheduling.policies.load_aware.predictions import OwnDurations, Predictions
from tuneloom.scheduling.records import Job
from tuneloom.scheduling.stages import DeviceDemand, StageRequest

FARTHEST = 6
GUESS_S = 1.0
"""What a stage of unknown length counts for, so that fewer stages still means sooner."""


@dataclass(slots=True)
class Path:
    """What one job showed: the kind after each kind, and the device key of device stages.

    `reach_s` is the longest way to a device that it showed lately.
    """

    follows: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    reach_s: float = 0.0

    def saw(self, before: str | None, request: StageRequest) -> None:
        """A stage became ready, right after one of kind `before` was done."""
        if before is not None:
            self.follows[before] = request.kind
        if isinstance(request.needs, DeviceDemand):
            self.keys[request.kind] = request.needs.key


Way = tuple[str | None, float, bool]
"""The device key a host stage leads to, the predicted work until then, and whether that is guessed.

Guessed ways contain a stage whose length or successor nobody has seen yet.
"""


def device_ahead(
    path: Path,
    job: Job,
    request: StageRequest,
    predictions: Predictions,
    own: OwnDurations,
    own_s: float | None,
) -> Way:
    """The way from this host stage to the next device.

    What the request says comes first, then what the job did before; a job that has
    shown nothing yet leads to its only device key, if it has exactly one.
    """
    lead_s, guessed = (GUESS_S, True) if own_s is None else (own_s, False)
    if isinstance(request.then, DeviceDemand):
        return request.then.key, lead_s, guessed
    kind = path.follows.get(request.kind)
    for _ in range(FARTHEST):
        if kind is None:
            break
        key = path.keys.get(kind)
        if key is not None:
            return key, lead_s, guessed
        lead_s += predictions.of_kind(kind, own)
        kind = path.follows.get(kind)
    only = next(iter(job.ticket.device_keys)) if len(job.ticket.device_keys) == 1 else None
    return only, lead_s + GUESS_S, True
