"""How a convolution is cut: rounds of tiles, one for each virtual thread, and what each needs on chip."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tuneloom_vta.configuration import Configuration
from tuneloom_vta.errors import ScheduleError
from tuneloom_vta.schedules.knobs import Knobs
from tuneloom_vta.schedules.workloads import Convolution

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Span:
    """Where tiles begin and how much they read along one axis, with zeros before and after."""

    begin: Numbers
    size: Numbers
    before: Numbers
    after: Numbers


@dataclass(frozen=True)
class Tiling:
    """One convolution cut by its knobs; raises ScheduleError where tiles can't be dealt to threads."""

    workload: Convolution
    knobs: Knobs
    configuration: Configuration

    def __post_init__(self) -> None:
        rows, channels = self._tiles_of_rows, self._tiles_of_channels
        for count, threads, what in (
            (rows, self.knobs.h_nthread, "rows"),
            (channels, self.knobs.oc_nthread, "channels"),
        ):
            if count % threads:
                raise ScheduleError(f"{count} tiles of {what} can't be dealt to {threads} threads")

    @property
    def _tiles_of_rows(self) -> int:
        return self.workload.out_height // self.knobs.tile_h

    @property
    def _tiles_of_channels(self) -> int:
        return self.workload.blocks(self.configuration)[1] // self.knobs.tile_co

    @property
    def threads(self) -> int:
        """Virtual threads; each has a part of every scratchpad."""
        return self.knobs.h_nthread * self.knobs.oc_nthread

    @property
    def steps(self) -> int:
        """Tiles of channels in that are summed up for one tile of results."""
        return self.workload.blocks(self.configuration)[0] // self.knobs.tile_ci

    @property
    def in_rows(self) -> int:
        """Rows of input that a tile reads, with zeros."""
        return (self.knobs.tile_h - 1) * self.workload.stride + self.workload.kernel

    @property
    def in_columns(self) -> int:
        """Columns of input that a tile reads, with zeros."""
        return (self.knobs.tile_w - 1) * self.workload.stride + self.workload.kernel

    @property
    def inputs(self) -> int:
        """Elements of input on chip for one thread."""
        return self.knobs.tile_ci * self.in_rows * self.in_columns

    @property
    def weights(self) -> int:
        """Elements of weights on chip for one thread."""
        return self.knobs.tile_co * self.knobs.tile_ci * self.workload.kernel**2

    @property
    def results(self) -> int:
        """Sums of one tile."""
        return self.knobs.tile_co * self.knobs.tile_h * self.knobs.tile_w

    @property
    def sums(self) -> int:
        """Elements of sums on chip for one thread: the tile and its bias."""
        return self.results + self.knobs.tile_co

    @property
    def plan(self) -> dict[str, int]:
        """Elements that all threads need in each scratchpad of data."""
        each = {"inp": self.inputs, "wgt": self.weights, "acc": self.sums}
        return {memory: self.threads * count for memory, count in each.items()}

    @cached_property
    def places(self) -> tuple[Numbers, Numbers, Numbers]:
        """Of every round and thread the tile of rows, of columns, and of channels out."""
        ht, ct = self.knobs.h_nthread, self.knobs.oc_nthread
        shape = (
            self._tiles_of_rows // ht,
            self._tiles_of_channels // ct,
            self.workload.out_width // self.knobs.tile_w,
        )
        row, channel, column = (axis.reshape(-1, 1) for axis in np.indices(shape))
        thread = np.arange(self.threads).reshape(1, -1)
        return row * ht + thread // ct, column + 0 * thread, channel * ct + thread % ct

    def rows(self) -> Span:
        """What tiles read along rows."""
        return self._span(self.places[0] * self.knobs.tile_h, self.in_rows, self.workload.height)

    def columns(self) -> Span:
        """What tiles read along columns."""
        return self._span(self.places[1] * self.knobs.tile_w, self.in_columns, self.workload.width)

    def _span(self, first: Numbers, count: int, extent: int) -> Span:
        begin = first * self.workload.stride - self.workload.padding
        low, high = np.maximum(begin, 0), np.minimum(begin + count, extent)
        return Span(low, high - low, low - begin, begin + count - high)
