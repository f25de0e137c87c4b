"""Devices that fail their canary again and again: put aside for a while, then tried again."""

from dataclasses import dataclass

from tuneloom.engine.machine import Offer

STRIKES = 3
"""So many canaries in a row have to fail."""

FIRST_PAUSE_S = 60.0
LONGEST_PAUSE_S = 960.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aside:
    offer: Offer
    until_s: float


class Quarantine:
    """Counts what canaries say of devices; the pause doubles each time that a device comes in again."""

    def __init__(self) -> None:
        self._strikes: dict[str, int] = {}
        self._times: dict[str, int] = {}
        self._aside: dict[str, _Aside] = {}

    def note(self, device: str, trouble: str) -> str:
        """Why a device should be put aside after this; empty if it should not. No trouble clears it."""
        if not trouble:
            self._strikes.pop(device, None)
            self._times.pop(device, None)
            return ""
        strikes = self._strikes[device] = self._strikes.get(device, 0) + 1
        return f"its canary failed {strikes} times in a row: {trouble}" if strikes >= STRIKES else ""

    def put_aside(self, offer: Offer, now_s: float) -> None:
        """Use a device no more until its pause is over."""
        name = offer.resource.name
        self._strikes[name] = STRIKES - 1  # one more failure is enough when it is back
        times = self._times[name] = self._times.get(name, 0) + 1
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (times - 1))
        self._aside[name] = _Aside(offer=offer, until_s=now_s + pause_s)

    def over(self, now_s: float) -> list[Offer]:
        """The devices that should be tried again now."""
        due = [aside.offer for aside in self._aside.values() if aside.until_s <= now_s]
        for offer in due:
            del self._aside[offer.resource.name]
        return due

    def left(self, device: str) -> None:
        """A device is gone by itself."""
        self._aside.pop(device, None)

    def machine_left(self, machine: str) -> None:
        """A machine is gone with its devices."""
        self._aside = {
            name: aside for name, aside in self._aside.items() if aside.offer.resource.machine != machine
        }
