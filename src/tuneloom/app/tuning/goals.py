"""What a job is tuned for: a latency, and how near the model is to it."""

from dataclasses import dataclass
from typing import Any

from tuneloom.model import Budget

_MOST_SCALE = 4.0


@dataclass(slots=True)
class Goal:
    """The latency at which a job may end.

    `reference_s` is what ONNX Runtime takes, once it was timed. Kernels are timed one by one; `scale`
    is how much longer the whole model took than their sum, once it was run.
    """

    budget: Budget
    reference_s: float | None = None
    scale: float = 1.0

    @property
    def latency_s(self) -> float | None:
        """What the model may take; None without a goal."""
        wanted = []
        if self.budget.goal_ms is not None:
            wanted.append(self.budget.goal_ms / 1e3)
        if self.budget.goal_ratio is not None and self.reference_s is not None:
            wanted.append(self.budget.goal_ratio * self.reference_s)
        return min(wanted, default=None)

    def met_by(self, kernels_s: float | None) -> bool:
        """Whether a model whose kernels take so long together meets it."""
        wanted_s = self.latency_s
        return wanted_s is not None and kernels_s is not None and kernels_s * self.scale <= wanted_s

    def missed_by(self, model_s: float) -> bool:
        """Whether a model that takes so long as a whole misses it."""
        wanted_s = self.latency_s
        return wanted_s is not None and model_s > wanted_s

    def calibrate(self, model_s: float, kernels_s: float | None) -> None:
        """Learn from the whole model: it may take longer than its kernels one by one."""
        if kernels_s is not None and kernels_s > 0:
            self.scale = min(_MOST_SCALE, max(1.0, model_s / kernels_s))

    def result(self, model_s: float | None) -> dict[str, Any]:
        """How a job stands against its goal, as plain data; nothing without a goal."""
        if self.budget.goal_ms is None and self.budget.goal_ratio is None:
            return {}
        wanted_s = self.latency_s
        told: dict[str, Any] = {"wanted_s": wanted_s, "met": None}
        if self.reference_s is not None:
            told["onnxruntime_s"] = self.reference_s
        if model_s is not None and wanted_s is not None:
            told["met"] = model_s <= wanted_s
        return {"goal": told}
