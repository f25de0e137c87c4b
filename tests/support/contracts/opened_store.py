"""A store for each test of a contract suite, opened as its author says."""

from collections.abc import Callable, Iterator

import pytest

from tuneloom.store import Store

OpenAgain = Callable[[], Store]


class OpenedStore:
    """Gives `store`, and `open_again` for a second one at the same place."""

    @pytest.fixture
    def open_again(self) -> OpenAgain:
        """Opens the same store once more; the author of a store replaces this."""
        raise NotImplementedError("a contract suite needs a fixture `open_again`")

    @pytest.fixture
    def store(self, open_again: OpenAgain) -> Iterator[Store]:
        """An empty store."""
        opened = open_again()
        yield opened
        opened.close()
