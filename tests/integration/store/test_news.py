"""PostgreSQL tells executors at once that there is something to do."""

import threading

from tuneloom.store import open_store
from tuneloom.store.running.news import News


def wait_for(news: News) -> bool:
    """Whether there are news within five minutes; asked often, since nothing else tells."""
    moment = threading.Event()
    for _ in range(6000):
        if news.came():
            return True
        moment.wait(0.05)
    return False


def test_who_listens_hears_of_a_run_that_was_submitted(postgres: str) -> None:
    store = open_store(postgres)
    with News(postgres) as news:
        assert wait_for(news), "when it begins to listen, something may have come before"
        assert not news.came()
        store.submit_run("tune", [("net", {})])
        assert wait_for(news)
    store.close()
