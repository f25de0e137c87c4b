"""Where a job's stages lead: which kind follows which, and how far the next device is."""

from dataclasses import dataclass, field

from tuneloom.scheduling.policies.predictions import Predictions
from tuneloom.scheduling.records import Job
from tuneloom.scheduling.stages import DeviceDemand, StageRequest

FARTHEST = 6


@dataclass(slots=True)
class Path:
    """What one job showed: the kind after each kind, and the device key of device stages."""

    follows: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)

    def saw(self, before: str | None, request: StageRequest) -> None:
        """A stage became ready, right after one of kind `before` was done."""
        if before is not None:
            self.follows[before] = request.kind
        if isinstance(request.needs, DeviceDemand):
            self.keys[request.kind] = request.needs.key


def device_ahead(
    path: Path, job: Job, request: StageRequest, predictions: Predictions, own_s: float
) -> tuple[str | None, float]:
    """The device key this host stage leads to, and the predicted work until then.

    What the request says comes first, then what the job did before; a job that has
    shown nothing yet leads to its only device key, if it has exactly one.
    """
    if isinstance(request.then, DeviceDemand):
        return request.then.key, own_s
    lead_s, kind = own_s, path.follows.get(request.kind)
    for _ in range(FARTHEST):
        if kind is None:
            break
        key = path.keys.get(kind)
        if key is not None:
            return key, lead_s
        lead_s += predictions.of_kind(job.ticket.id, kind)
        kind = path.follows.get(kind)
    if len(job.ticket.device_keys) == 1:
        return next(iter(job.ticket.device_keys)), lead_s
    return None, lead_s
