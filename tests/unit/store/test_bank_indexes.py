"""Questions to the bank are answered from the beginning of an index, never by a scan or a sort."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from tuneloom.store import Store, open_store

QUESTIONS: dict[str, Callable[[Store], object]] = {
    "trials_of_workload": lambda store: store.workload_trials("k", "llvm", 10),
    "workloads_of_class": lambda store: store.workloads("conv2d", "llvm"),
}


def asked(store: Store, question: Callable[[Store], object]) -> tuple[str, tuple[object, ...]]:
    """The last SELECT that a question sends, with its parameters."""
    sent: list[tuple[str, tuple[object, ...]]] = []

    def listen(
        _c: object, _cursor: object, statement: str, parameters: tuple[object, ...], *_: object
    ) -> None:
        sent.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", listen)
    question(store)
    event.remove(Engine, "before_cursor_execute", listen)
    return [pair for pair in sent if pair[0].startswith("SELECT")][-1]


@pytest.mark.parametrize("index", QUESTIONS)
def test_a_question_uses_its_index(tmp_path: Path, index: str) -> None:
    store = open_store(tmp_path / "store.db")
    statement, parameters = asked(store, QUESTIONS[index])
    store.close()
    connection = sqlite3.connect(tmp_path / "store.db")
    plan = " / ".join(row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + statement, parameters))
    connection.close()
    assert f"USING INDEX {index} (" in plan
    assert "SCAN" not in plan
    if index.startswith("trials"):
        assert "TEMP B-TREE" not in plan or "LAST TERM" in plan
