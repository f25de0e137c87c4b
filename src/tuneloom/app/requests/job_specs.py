"""Jobs from flat values, wherever those come from."""

from collections.abc import Mapping
from typing import Any

from tuneloom.app.kinds.base import JobKind
from tuneloom.app.requests.fields import require_fields
from tuneloom.app.requests.shapes import shape_sets
from tuneloom.app.requests.sources import device_for, kind_of
from tuneloom.errors import InputError
from tuneloom.model import Budget, JobSpec, MeasuringRules

_SPEC_KEYS = (
    "target",
    "pad",
    "batch",
    "seed",
    "priority",
    "deadline_s",
    "arrival_s",
    "layout",
    "only_tvm",
    "dtype",
    "samples",
    "tolerance",
    "reuse",
)
DEFAULT_TRIALS = 1000


def job_spec(values: Mapping[str, Any]) -> JobSpec:
    """A job from flat values under the names that files use; None counts as not given.

    Raises InputError with the field for a value that makes no sense.
    """
    values = {field: value for field, value in values.items() if value is not None}
    require_fields(values)
    kind = kind_of(values["model"], values.get("tuner"))
    limits = {name: values[name] for name in ("run_timeout_s", "build_timeout_s") if name in values}
    shapes, *more = shape_sets(values.get("shapes", {}))
    spec = JobSpec(
        name=values["name"],
        model=values["model"],
        tuner=kind.name,
        device_key=values.get("device") or device_for(values.get("target", "cpu")),
        budget=Budget(
            trials=values.get("trials", DEFAULT_TRIALS),
            seconds=values.get("seconds"),
            goal_ms=values.get("goal_ms"),
            goal_ratio=values.get("goal_ratio"),
        ),
        measuring=MeasuringRules(**limits),
        waits_for_devices=values.get("waits_for_devices", False),
        out=values.get("out"),
        shapes=shapes,
        more_shapes=tuple(more),
        **{name: values[name] for name in _SPEC_KEYS if name in values},
    )
    _require_comparable(spec, kind)
    return kind.filled_in(spec, values)


def _require_comparable(spec: JobSpec, kind: JobKind) -> None:
    if spec.budget.goal_ratio is not None and not kind.comparable(spec):
        raise InputError(
            f"{spec.name}: 'goal_ratio' needs an ONNX model on the CPU, which ONNX Runtime can run as well; "
            "give 'goal_ms' instead",
            field="goal_ratio",
        )
