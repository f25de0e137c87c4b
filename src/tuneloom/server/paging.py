"""Pages of lists: bounded, and stable while things are added."""

from collections.abc import Sequence
from typing import Annotated, Protocol

from fastapi import Query


class Numbered(Protocol):
    """Something that lists can be cut by."""

    @property
    def number(self) -> int:
        """Grows with everything that is added."""


Before = Annotated[
    int | None, Query(ge=0, le=2**53, description="only entries before this one: `next` of the previous page")
]
Limit = Annotated[int, Query(ge=1, le=500, description="the largest number of entries to return")]


def next_of(found: Sequence[Numbered], limit: int) -> int | None:
    """Where the next page begins, if this one is full."""
    return found[-1].number if len(found) == limit else None
