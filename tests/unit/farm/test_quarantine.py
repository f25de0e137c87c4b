"""A device whose canary fails again and again is put aside, with its reason, and tried again later."""

from tuneloom.app.conducting.quarantine import FIRST_PAUSE_S, STRIKES, Quarantine
from tuneloom.engine.machine import Offer
from tuneloom.model import Device

OFFER = Offer(resource=Device(name="d", key="k", machine="m"))


def struck(quarantine: Quarantine, times: int) -> str:
    return [quarantine.note("d", "it crashed") for _ in range(times)][-1]


def test_a_device_is_put_aside_after_several_failures_in_a_row() -> None:
    quarantine = Quarantine()
    assert struck(quarantine, STRIKES - 1) == ""
    assert quarantine.note("d", "") == ""
    assert struck(quarantine, STRIKES - 1) == ""
    assert quarantine.note("d", "it crashed") == "its canary failed 3 times in a row: it crashed"


def test_it_is_tried_again_after_a_pause_that_doubles() -> None:
    quarantine = Quarantine()
    struck(quarantine, STRIKES)
    quarantine.put_aside(OFFER, 0.0)
    assert quarantine.over(FIRST_PAUSE_S - 1) == []
    assert quarantine.over(FIRST_PAUSE_S) == [OFFER]
    assert quarantine.note("d", "it crashed"), "one more failure is enough when it is back"
    quarantine.put_aside(OFFER, 100.0)
    assert quarantine.over(100.0 + FIRST_PAUSE_S) == []
    assert quarantine.over(100.0 + 2 * FIRST_PAUSE_S) == [OFFER]


def test_a_device_that_left_by_itself_is_not_brought_back() -> None:
    quarantine = Quarantine()
    quarantine.put_aside(OFFER, 0.0)
    quarantine.left("d")
    quarantine.put_aside(OFFER, 0.0)
    quarantine.machine_left("m")
    assert quarantine.over(1e9) == []
