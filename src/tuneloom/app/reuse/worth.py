"""What gifts were worth, for the report."""

from collections.abc import Mapping
from typing import Any

from tuneloom.app.tasks.origins import SHARE, is_borrowed
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.transfer import Donor


def gifts_of(
    progress: TaskProgress, used: str, donors: Mapping[str, Donor], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The best of what every donor gave to a task; `used` is the candidate in the final model."""
    gifts: dict[str, dict[str, Any]] = {}
    for trial in progress.trials:
        origin = trial.candidate.origin
        if not is_borrowed(origin) or trial.seconds is None:
            continue
        gift = gifts.setdefault(origin, _gift(origin, donors.get(origin), names))
        gift["after_s"] = min(trial.seconds, gift["after_s"] or trial.seconds)
        gift["used"] = gift["used"] or trial.candidate.key == used
    return list(gifts.values())


def _gift(origin: str, donor: Donor | None, names: Mapping[str, str]) -> dict[str, Any]:
    told = {"donor": origin.partition(":")[2], "source": origin, "after_s": None, "used": False}
    if donor is None:
        return told
    if origin.startswith(SHARE):
        return told | {"source": "this job"}
    named = names.get(donor.task_key, donor.task_key)
    return told | {"donor": named, "source": f"record {donor.record}, measured on {donor.device_key}"}
