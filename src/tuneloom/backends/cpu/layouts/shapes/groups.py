"""Convolutions in groups on blocked channels: which blocks of the input an output block needs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tuneloom.backends.cpu.layouts.shapes.values import Array, blocks
from tuneloom.compiler.lazy import te


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """`count` groups of `inside` input and `outside` output channels, in blocks of `lanes`.

    Groups need not be whole blocks. Every output block reads `span` input blocks from
    `first_block` on, as many as the neediest one; where it needs fewer, the weights
    of the rest are zero.
    """

    count: int
    inside: int
    outside: int
    lanes: int

    @property
    def in_blocks(self) -> int:
        return blocks(self.count * self.inside, self.lanes)

    @property
    def out_blocks(self) -> int:
        return blocks(self.count * self.outside, self.lanes)

    @property
    def span(self) -> int:
        reaches: list[int] = [self._last(o) - self._start(o) for o in range(self.out_blocks)]
        return max(reaches) + 1

    def first_block(self, o: Any) -> Any:
        """The first input block that an output block reads; `o` may be an expression of TVM's."""
        latest = self.in_blocks - self.span
        if latest == 0:
            return 0
        if isinstance(o, int):
            return min(self._start(o), latest)
        return te.min(self._start(o), latest)

    def _start(self, o: Any) -> Any:
        return o * self.lanes // self.outside * self.inside // self.lanes

    def _last(self, o: int) -> int:
        channel = min((o + 1) * self.lanes, self.count * self.outside) - 1
        group = max(channel, o * self.lanes) // self.outside
        return min(((group + 1) * self.inside - 1) // self.lanes, self.in_blocks - 1)

    def pack(self, weight: Array) -> Array:
        """(out, in of a group, kh, kw) to (out blocks, span, kh, kw, in, out)."""
        kh, kw = weight.shape[2:]
        whole = np.zeros((self.out_blocks * self.lanes, self.in_blocks * self.lanes, kh, kw), np.float32)
        for group in range(self.count):
            rows = slice(group * self.outside, (group + 1) * self.outside)
            whole[rows, group * self.inside : (group + 1) * self.inside] = weight[rows]
        split = whole.reshape(self.out_blocks, self.lanes, self.in_blocks, self.lanes, kh, kw)
        ordered = split.transpose(0, 2, 4, 5, 3, 1)
        starts = [self.first_block(o) for o in range(self.out_blocks)]
        return np.stack([ordered[o, start : start + self.span] for o, start in enumerate(starts)])
