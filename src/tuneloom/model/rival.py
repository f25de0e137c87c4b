"""What a job's result says of the runtime that its user would use instead."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tuneloom.model.opened import title_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A runtime beside which a bundle was timed, in turn; without a name where nothing was compared."""

    name: str
    """As people call it. The one that the whole model is left to comes before the one it belongs to."""
    alone_s: float | None
    bundle_s: float | None

    @classmethod
    def told_by(cls, result: Mapping[str, Any]) -> "Rival":
        """The comparison in the result of a job."""
        own, left = result.get("own_runtime", {}), result.get("left_to_onnxruntime", {})
        left_to = left.get("runtime") if left.get("whole") else None
        return cls(
            name=title_of(str(left_to or own.get("name", ""))),
            alone_s=left.get("onnxruntime_s", own.get("latency_s")),
            bundle_s=left.get("latency_s", own.get("tuned_s")),
        )
