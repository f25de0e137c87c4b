"""What all tiers share: a warm interpreter, and which tests stay together when two processes share them."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tuneloom.testing.warm import WarmInterpreter

pytest.register_assert_rewrite(
    "tuneloom.testing.engine_contract",
    "tuneloom.testing.policy_contract",
    "tuneloom.testing.service_contract",
    "tuneloom.testing.store_contract",
    "tuneloom.testing.tuner_contract",
)

# How long an example takes says something of the machine, nothing of the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

DEAR = ("tuned", "postgres_server")
"""Fixtures that take seconds: the tests that use one of them stay together."""
SLOWEST_FIRST = ("acceptance/test_documented", "integration/app", "integration", "acceptance", "unit")
"""At the end, when one process has nothing left to do, the other should be at something short."""


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmInterpreter]:
    """Starts programs in milliseconds; it costs nothing until somebody asks for the first."""
    interpreter = WarmInterpreter()
    yield interpreter
    interpreter.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_turn)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def _turn(item: pytest.Item) -> int:
    path = item.path.as_posix()
    return next(n for n, part in enumerate((*SLOWEST_FIRST, "")) if f"/tests/{part}" in path)


def _group(item: pytest.Item) -> str:
    """Tests of a file stay together, for the sake of its fixtures; pages of documentation do not."""
    fixtures = getattr(item, "fixturenames", ())
    if "page" in fixtures and "documented" in item.path.name:
        return item.name
    return next((name for name in DEAR if name in fixtures), item.path.as_posix())
