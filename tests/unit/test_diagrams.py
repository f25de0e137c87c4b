"""The diagrams in the docs are what their script draws from the code now."""

import re
import runpy
from pathlib import Path

import pytest

from tuneloom.scheduling import MOVES
from tuneloom.scheduling.moves import ENDS

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
DIAGRAMS = runpy.run_path(str(FIGURES / "diagrams.py"))["DIAGRAMS"]
TITLE = re.compile(r"<title>(\w+) to (\w+): (.+)</title>")


@pytest.mark.parametrize("name", DIAGRAMS)
def test_the_diagram_is_up_to_date(name: str) -> None:
    drawn = (FIGURES / name).read_text() == DIAGRAMS[name]()
    assert drawn, "the code has changed; run `PYTHONPATH=src:tests python docs/figures/diagrams.py`"


def test_every_move_of_a_job_is_an_arrow_and_cancelling_is_one_for_all() -> None:
    drawn = {(old, new): reason for old, new, reason in TITLE.findall((FIGURES / "states.svg").read_text())}
    from_the_frame = {(old, new): why for (old, new), why in MOVES.items() if why == "cancelled"}
    assert {old for old, _ in from_the_frame} == {old for old, _ in MOVES if old is not None} - set(ENDS)
    others = {(old or "start", new): why for (old, new), why in MOVES.items() if why != "cancelled"}
    assert drawn == others
