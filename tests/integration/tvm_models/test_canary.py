"""The kernel that is timed between batches is built once for all jobs of a nursery."""

import pytest

from tuneloom.backends.resolving import resolve_target
from tuneloom.errors import TuneloomError
from tuneloom.tuners.tvm.measuring import canary


def test_a_canary_is_built_once_for_each_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary, "_BUILT", {})
    first = canary.canary_payload(resolve_target("cpu"))

    def again(_payload: bytes) -> None:
        raise TuneloomError("built again")

    monkeypatch.setattr(canary, "build_kernel", again)
    assert first and canary.canary_payload(resolve_target("cpu")) == first
    with pytest.raises(TuneloomError):
        canary.canary_payload(resolve_target("cpu", cores=2))
