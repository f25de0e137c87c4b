"""The page in the docs and the table in the code say the same."""

import re
from pathlib import Path

import pytest

from tuneloom.errors import SchedulingError
from tuneloom.scheduling import MOVES, JobState
from tuneloom.scheduling.moves import ENDS, require_move

DOCS = Path(__file__).parents[3] / "docs"
SENTENCE = re.compile(r"^- `(\S+) --> (\S+)`: \S+", re.MULTILINE)


def name_of(state: JobState | None) -> str:
    return "[*]" if state is None else state.value


def test_every_move_has_its_sentence() -> None:
    told = SENTENCE.findall((DOCS / "states.md").read_text())
    assert sorted(told) == sorted((name_of(old), name_of(new)) for old, new in MOVES)


@pytest.mark.parametrize("old", JobState)
@pytest.mark.parametrize("new", JobState)
def test_moves_outside_the_table_raise(old: JobState, new: JobState) -> None:
    if (old, new) in MOVES:
        require_move("a", old, new)
    else:
        with pytest.raises(SchedulingError, match="can't move"):
            require_move("a", old, new)


def test_no_move_leaves_an_end() -> None:
    assert not [old for old, _ in MOVES if old in ENDS]
