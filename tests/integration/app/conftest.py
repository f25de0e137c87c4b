"""A workplace for each test, a plug-in on the path, and one tuned model that many tests look at."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.commands import Workplace
from support.models.onnx_files import write_network
from support.warm import WarmInterpreter

PLUGIN = Path(__file__).parent / "plugin"
ENTRY_POINTS = """\
[tuneloom.tuners]
moody = odd_tuners:MoodyTuner
watched = odd_tuners:WatchedTuner
wrong = odd_tuners:WrongTuner

[tuneloom.kinds]
moody = odd_tuners:MOODY
watched = odd_tuners:WATCHED
wrong = odd_tuners:WRONG
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """A finished run: where, what was printed, the bundle."""

    place: Workplace
    printed: dict[str, Any]
    bundle: Path
    error: str


@pytest.fixture
def place(tmp_path: Path, warm: WarmInterpreter) -> Workplace:
    write_network(tmp_path / "net.onnx")
    return Workplace(folder=tmp_path, warm=warm)


@pytest.fixture(scope="session")
def tuned(tmp_path_factory: pytest.TempPathFactory, warm: WarmInterpreter) -> Tuned:
    """A small network tuned with sixteen trials; tests must not change it."""
    place = Workplace(folder=tmp_path_factory.mktemp("tuned"), warm=warm)
    write_network(place.folder / "net.onnx")
    done = place.run("tune", "net.onnx", "--trials", "16", "--batch", "8", "--out", "fast", "--json")
    assert done.returncode == 0, done.stderr
    return Tuned(
        place=place, printed=json.loads(done.stdout), bundle=place.folder / "fast", error=done.stderr
    )


@pytest.fixture
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put the plug-in where worker processes find it."""
    installed = tmp_path / "installed" / "odd_tuners-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-tuners\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.setenv("PYTHONPATH", f"{installed.parent}:{PLUGIN}")
    for folder in (installed.parent, PLUGIN):
        monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("TUNELOOM_HOME", str(tmp_path / "home"))

    def also(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return also
