"""Built candidates stay on the machine that built them; what the driver sees of them is a receipt."""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tuneloom.engine.calls import Call, CallEnded, Returned
from tuneloom.model import Artifact

SMALL_BYTES = 8192
"""What is smaller travels with the messages."""

_MOST_BYTES = 1 << 30


class Receipt(bytes):
    """Stands for bytes that lie on another machine; empty itself.

    `id` is what they are kept under on `machine`.
    """

    id: str
    machine: str
    stub: object = None
    """Whatever should live as long as this very object."""

    def __new__(cls, id: str, machine: str) -> "Receipt":
        receipt = super().__new__(cls)
        receipt.id, receipt.machine = id, machine
        return receipt

    def __reduce__(self) -> tuple[type["Receipt"], tuple[str, str]]:
        return Receipt, (self.id, self.machine)

    def __repr__(self) -> str:
        return f"Receipt({self.id!r}, {self.machine!r})"


class MissingArtifact(Exception):  # noqa: N818 - the name is the message
    """What a receipt stands for is not there any more."""

    def __init__(self, receipt: Receipt) -> None:
        super().__init__(receipt)
        self.receipt = receipt


class ArtifactCache:
    """What one machine keeps: its own artifacts and copies of others'; the oldest goes when it is full."""

    def __init__(self, machine: str, most_bytes: int = _MOST_BYTES) -> None:
        self._machine = machine
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._number = 0
        self._incarnation = secrets.token_hex(4)

    def stow(self, ended: CallEnded) -> CallEnded:
        """The end of a call with a receipt in the place of a large artifact."""
        value = ended.result.value if isinstance(ended.result, Returned) else None
        if not isinstance(value, Artifact) or len(value.payload) < SMALL_BYTES:
            return ended
        self._number += 1
        receipt = Receipt(f"{self._incarnation}.{self._number}", self._machine)
        self.keep(receipt.id, value.payload)
        return replace(ended, result=Returned(value=replace(value, payload=receipt)))

    def keep(self, id: str, payload: bytes) -> None:
        self._kept[id] = payload
        self._bytes += len(payload)
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            self._bytes -= len(self._kept.popitem(last=False)[1])

    def find(self, id: str) -> bytes | None:
        """What is kept under this id, if it still is."""
        return self._kept.get(id)

    def get(self, receipt: Receipt) -> bytes:
        """What a receipt stands for; raises MissingArtifact if it is not kept any more."""
        kept = self._kept.get(receipt.id)
        if kept is None:
            raise MissingArtifact(receipt)
        return kept

    def drop(self, id: str) -> None:
        self._bytes -= len(self._kept.pop(id, b""))


def receipts_in(call: Call) -> list[Receipt]:
    """What a call needs from machines that built something for it."""
    receipts: list[Receipt] = []
    for argument in call.arguments:
        value = argument.payload if isinstance(argument, Artifact) else argument
        if isinstance(value, Receipt):
            receipts.append(value)
        elif isinstance(value, list):
            receipts += [each for each in value if isinstance(each, Receipt)]
    return receipts


def unpacked(call: Call, fetched: Callable[[Receipt], bytes]) -> Call:
    """The call with what `fetched` gives in the place of every receipt."""
    if not call.arguments:
        return call
    return replace(call, arguments=tuple(_unpacked(argument, fetched) for argument in call.arguments))


def _unpacked(value: Any, fetched: Callable[[Receipt], bytes]) -> Any:
    if isinstance(value, Receipt):
        return fetched(value)
    if isinstance(value, Artifact) and isinstance(value.payload, Receipt):
        return replace(value, payload=fetched(value.payload))
    if isinstance(value, list) and any(isinstance(each, Receipt) for each in value):
        return [_unpacked(each, fetched) for each in value]
    return value
