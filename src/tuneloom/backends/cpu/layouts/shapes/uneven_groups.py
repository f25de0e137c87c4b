"""Convolutions in groups that end inside blocks: which groups of channels an output block reads.

Whole blocks of input hold channels of other groups too, and the few output blocks that lie in two groups
would set how many blocks all others read. Reading by channels takes about half the products.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tuneloom.backends.cpu.layouts.shapes.groups import Groups
from tuneloom.backends.cpu.layouts.shapes.values import Array
from tuneloom.compiler.lazy import te

_TEAMS = (1, 2, 4)
_LARGEST_TILE, _BUSY_TILE = 28, 10
"""How many vectors of a result are computed together at most, and how many keep all multipliers busy."""
_ENDS = 4
"""Clearing, adding to and storing the vectors of a tile takes about as long as so many input channels."""
_WORTH_IT = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class UnevenGroups:
    """Groups read by channels: every output block reads its own groups and no others.

    `team` neighbouring output blocks read the same groups, so that one tile may hold all of them.
    """

    groups: Groups
    team: int = 1

    @property
    def step(self) -> int:
        """How many neighbouring channels of a group always lie in one block."""
        return math.gcd(self.groups.inside, self.groups.lanes)

    @property
    def reads(self) -> list[int]:
        """How many groups each output block reads."""
        return [self.read_by(o) for o in range(self.groups.out_blocks)]

    @property
    def channels(self) -> int:
        """How many input channels all output blocks read together."""
        return sum(self.reads) * self.groups.inside

    def cost(self, image: Sequence[int]) -> float:
        """Roughly the time for an output of this size, in channels read by tiles that fill the registers."""
        return _cost(self.channels, self.groups.out_blocks, _fullness(image, self.team))

    def channel(self, o: Any, group: Any, inner: Any) -> Any:
        """The input channel that an output block finds at a place inside the n-th group that it reads."""
        return (self.first(o) + group) * self.groups.inside + inner

    def first(self, o: Any) -> Any:
        """The first group that an output block reads; `o` may be an expression of TVM's."""
        return self._group_of(o // self.team * self.team * self.groups.lanes)

    def read_by(self, o: Any) -> Any:
        """How many groups an output block reads; `o` may be an expression of TVM's."""
        return self._group_of((o // self.team + 1) * self.team * self.groups.lanes - 1) - self.first(o) + 1

    def _group_of(self, channel: Any) -> Any:
        """The group of an output channel; channels that only fill up the last blocks belong to the last."""
        last = self.groups.count * self.groups.outside - 1
        if isinstance(channel, int):
            return min(channel, last) // self.groups.outside
        filled = self.groups.out_blocks * self.groups.lanes == last + 1
        return (channel if filled else te.min(channel, last)) // self.groups.outside

    def pack(self, weight: Array) -> Array:
        """(out, in of a group, kh, kw) to (out blocks, groups, steps, kh, kw, in of a step, out)."""
        out_blocks, lanes = self.groups.out_blocks, self.groups.lanes
        most = max(self.reads)
        rows = np.zeros((out_blocks * lanes, most, *weight.shape[1:]), np.float32)
        for channel, row in enumerate(weight):
            rows[channel, self._group_of(channel) - self.first(channel // lanes)] = row
        split = rows.reshape(out_blocks, lanes, most, -1, self.step, *weight.shape[2:])
        return np.ascontiguousarray(split.transpose(0, 2, 3, 5, 6, 4, 1))


def by_channels(groups: Groups, image: Sequence[int]) -> UnevenGroups | None:
    """How to read groups by channels for an output of this size; None where blocks are about as good."""
    teams = [team for team in _TEAMS if groups.out_blocks % team == 0]
    best = min((UnevenGroups(groups=groups, team=team) for team in teams), key=lambda one: one.cost(image))
    worthwhile = best.cost(image) <= _WORTH_IT * _cost_by_blocks(groups, image)
    return best if worthwhile and len(set(best.reads)) > 1 else None


def _cost_by_blocks(groups: Groups, image: Sequence[int]) -> float:
    together = max(size for size in _divisors(groups.out_blocks) if size <= max(_TEAMS))
    channels = groups.span * groups.lanes * groups.out_blocks
    return _cost(channels, groups.out_blocks, _fullness(image, together))


def _cost(channels: int, out_blocks: int, fullness: float) -> float:
    return (channels + _ENDS * out_blocks) / fullness


def _fullness(image: Sequence[int], blocks: int) -> float:
    """How busy the multipliers are with the largest tile of an image and so many blocks of channels."""
    tiles = (math.prod(tile) for tile in product(*(_divisors(extent) for extent in image)))
    return min(1.0, blocks * max(tile for tile in tiles if tile <= _LARGEST_TILE) / _BUSY_TILE)


def _divisors(extent: int) -> list[int]:
    return [size for size in range(1, extent + 1) if extent % size == 0]
