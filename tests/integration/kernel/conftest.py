"""Kernels are tuned with a store of their own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of the store."""
    place = tmp_path / "home"
    monkeypatch.setenv("TUNELOOM_HOME", str(place))
    return place
