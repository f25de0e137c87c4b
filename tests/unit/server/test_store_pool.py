"""Stores that threads of a server borrow."""

from typing import cast

from tuneloom.server.stores import StorePool
from tuneloom.store import Store


class Closable:
    """All of a store that a pool needs."""

    closed = False

    def close(self) -> None:
        self.closed = True


def test_a_store_that_is_lent_while_its_pool_is_closed_is_closed_when_it_comes_back() -> None:
    stores = [Closable(), Closable()]
    left = iter(stores)
    pool = StorePool(lambda: cast(Store, next(left)), most=1)
    with pool.lent() as store:
        pool.close()
        assert store is cast(Store, stores[0]) and not stores[0].closed
    assert stores[0].closed
    with pool.lent():
        assert not stores[1].closed, "whoever comes late still gets one"
    assert stores[1].closed
