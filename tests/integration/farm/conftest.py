"""One simulated cluster of three machines for all tests of a process; without Ray these tests are skipped."""

from collections.abc import Iterator

import pytest

pytest.importorskip("ray", reason="Ray is not installed; install tuneloom[farm]", exc_type=ImportError)

from tuneloom.engine.ray.simulated import SimulatedCluster

NAMES = ("alder", "birch", "cedar")


@pytest.fixture(scope="session")
def simulated() -> Iterator[SimulatedCluster]:
    cluster = SimulatedCluster(NAMES)
    yield cluster
    cluster.close()
