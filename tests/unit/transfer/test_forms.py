"""Traces read as forms."""

import pytest

from support.samples.traces import tiled_trace
from tuneloom.transfer import DoesNotFit, Form, form_of
from tuneloom.transfer.forms import likeness

TILES = [(8, 7), (4, 2)]


def form(text: str) -> Form:
    found = form_of(text)
    assert isinstance(found, Form)
    return found


def test_decisions_are_read_in_order() -> None:
    assert form(tiled_trace(TILES)).decisions == ((8, 7), (4, 2))


def test_another_epilogue_has_the_same_form() -> None:
    assert likeness(form(tiled_trace(TILES)), form(tiled_trace(TILES, inlined=3))) == 1.0


def test_another_shape_has_the_same_form() -> None:
    assert likeness(form(tiled_trace(TILES)), form(tiled_trace([(1, 1), (3, 3)]))) == 1.0


def test_another_order_of_loops_is_less_alike_but_not_alien() -> None:
    alike = likeness(form(tiled_trace(TILES)), form(tiled_trace(TILES, reverse=True)))
    assert 0.5 < alike < 1.0


def test_other_knobs_are_alien() -> None:
    assert likeness(form(tiled_trace(TILES)), form(tiled_trace(TILES[:1]))) == 0.0


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[]", "[[],[],[]]", "{}", "[[[1]],[]]", "null", '[["x"],1]']
)
def test_anything_else_is_no_trace(text: str) -> None:
    assert isinstance(form_of(text), DoesNotFit)


def test_a_sampling_instruction_without_a_decision_does_not_fit() -> None:
    text = '[[["SampleCategorical",[],[[1,2],[0.5,0.5]],["v0"]]],[]]'
    assert form_of(text) == DoesNotFit("instruction 0 has no decision")


def test_what_postprocessing_added_is_left_out() -> None:
    text = '[[["GetLoops",["b0"],[],["l1"]],["EnterPostproc",[],[],[]],["SampleCategorical",[],[],[]]],[]]'
    assert form(text).kinds == ("GetLoops",)
