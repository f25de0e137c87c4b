"""What all tiers share: contract suites that show what they compared, and a warm interpreter."""

from collections.abc import Iterator

import pytest

from tuneloom.testing.warm import WarmInterpreter

pytest.register_assert_rewrite("tuneloom.testing.store_contract", "tuneloom.testing.tuner_contract")


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmInterpreter]:
    """Starts programs in milliseconds; it costs nothing until somebody asks for the first."""
    interpreter = WarmInterpreter()
    yield interpreter
    interpreter.close()
