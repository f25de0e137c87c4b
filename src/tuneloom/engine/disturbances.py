"""Noticing who else uses the GPUs of this machine, before and while calls measure there."""

import threading
from collections.abc import Callable, Iterable, Mapping
from queue import Empty, SimpleQueue

from tuneloom.engine.gpus import VISIBLE, disturbance, users, visible_gpus
from tuneloom.engine.machine import Offer
from tuneloom.engine.reports import ResourceDisturbed

_EVERY_S = 10.0

Seen = Mapping[str, str]
"""Who else uses a GPU, by its identifier."""


def disturbed_gpus() -> Seen:
    """Who else uses which GPU now; asking the driver takes a moment."""
    others = users()
    found = {gpu.uuid: disturbance(gpu, others) for gpu in visible_gpus()}
    return {uuid: by for uuid, by in found.items() if by}


class Disturbances:
    """Asks the driver every few seconds in a thread of its own; without GPUs it never does."""

    def __init__(self, ask: Callable[[], Seen] = disturbed_gpus) -> None:
        self._ask = ask
        self.answers: SimpleQueue[Seen] = SimpleQueue()
        self._known: dict[str, str] = {}
        self._thread: threading.Thread | None = None

    def look(self, offers: Iterable[Offer]) -> list[ResourceDisturbed]:
        """What has changed for these resources since the last look; never blocks."""
        gpus = {
            offer.environment[VISIBLE]: offer.resource.name
            for offer in offers
            if VISIBLE in offer.environment
        }
        if not gpus:
            return []
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="gpus", daemon=True)
            self._thread.start()
        return self.news(gpus)

    def news(self, gpus: Mapping[str, str]) -> list[ResourceDisturbed]:
        """What the answers since the last time change for GPUs: names of resources by identifier."""
        news = []
        while (seen := self._answer()) is not None:
            for uuid, name in gpus.items():
                by = seen.get(uuid, "")
                if by.partition(";")[0] != self._known.get(uuid, ""):
                    self._known[uuid] = by.partition(";")[0]
                    news.append(ResourceDisturbed(name=name, by=by))
        return news

    def _answer(self) -> Seen | None:
        try:
            return self.answers.get_nowait()
        except Empty:
            return None

    def _watch(self) -> None:
        pause = threading.Event()
        while True:
            self.answers.put(self._ask())
            pause.wait(_EVERY_S)
