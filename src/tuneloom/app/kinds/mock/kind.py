"""Mock jobs: tasks without a compiler, for trying the scheduler and for tests."""

from dataclasses import replace

from tuneloom.app.kinds.tuner.kind import require_no_bundle, tuner_kind
from tuneloom.model import JobSpec
from tuneloom.tuners.mock import MockTuner
from tuneloom.tuners.mock.kernel import mock_tasks


def _check(spec: JobSpec) -> None:
    mock_tasks(spec.model)
    require_no_bundle(spec)


KIND = replace(
    tuner_kind(MockTuner.name),
    check=_check,
    refusal=lambda _spec: None,
    warm_up="tuneloom.tuners.mock.warmth:warm_up",
)
