"""One simulated cluster of three machines for all tests of a process; without Ray these tests are skipped."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.engines.simulated_cluster import SimulatedCluster

NAMES = ("alder", "birch", "cedar")


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the machines of the cluster keep their files."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def simulated(home: Path) -> Iterator["SimulatedCluster"]:
    pytest.importorskip("ray", reason="Ray is not installed; install tuneloom[farm]", exc_type=ImportError)
    from support.engines.simulated_cluster import SimulatedCluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUNELOOM_HOME", str(home))
        cluster = SimulatedCluster(NAMES)
    yield cluster
    cluster.close()
