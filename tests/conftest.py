"""What all tiers share: a warm interpreter, and which tests stay together when two processes share them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from support.warm import WarmInterpreter

pytest.register_assert_rewrite("tuneloom.testing.contracts", "support.contracts")

# How long an example takes says something of the machine, nothing of the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

TOGETHER = {
    "integration/app/test_databases.py": "tests/integration/app/test_tune.py",
    "integration/store/": "integration/store/",
    "integration/farm/": "integration/farm/",
    "unit/test_no_kinds.py": "tests/unit/test_layers.py",
}
"""Files that share a fixture which takes seconds: they go to one process."""
SLOWEST_FIRST = ("acceptance/test_documented", "integration/app", "integration", "acceptance", "unit")
"""At the end, when one process has nothing left to do, the other should be at something short."""


@pytest.fixture(scope="session", autouse=True)
def own_surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What programs keep in folders of the user and of the machine they keep in ones that go away.

    Processes that tests start find the package `support`, as the tests themselves do.
    No other fixture may have this name: it would take the place of this one in its folder.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUNELOOM_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("TUNELOOM_STARTER_BANK", "off")  # what is known differs from machine to machine
        patch.setenv("TUNELOOM_DEVICE_LOCKS", str(tmp_path_factory.mktemp("locks")))
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        yield


SHARED = pytest.StashKey[WarmInterpreter]()


@pytest.fixture(scope="session")
def warm(request: pytest.FixtureRequest) -> Iterator[WarmInterpreter]:
    """Starts programs in milliseconds; it costs nothing until somebody asks for the first."""
    interpreter = WarmInterpreter(getattr(request.config, "workerinput", {}).get("warm"))
    yield interpreter
    interpreter.close()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Processes that share the tests share a warm interpreter."""
    if SHARED not in node.config.stash:
        node.config.stash[SHARED] = WarmInterpreter()
    node.workerinput["warm"] = node.config.stash[SHARED].address


def pytest_unconfigure(config: pytest.Config) -> None:
    if SHARED in config.stash:
        config.stash[SHARED].close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _turn(item.path.as_posix()))


def _turn(path: str) -> int:
    return next(n for n, part in enumerate((*SLOWEST_FIRST, "")) if f"/tests/{part}" in path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give processes whole groups of tests, in the order in which they were collected."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return _group(nodeid)

    config.option.loadscopereorder = False
    return Groups(config, log)


def _group(nodeid: str) -> str:
    """Tests of a file stay together, for the sake of its fixtures; pages of documentation do not."""
    if "test_the_commands_of_a_page" in nodeid:
        return nodeid
    path = nodeid.partition("::")[0]
    return next((group for part, group in TOGETHER.items() if f"tests/{part}" in path), path)
