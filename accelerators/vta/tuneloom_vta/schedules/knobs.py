"""The knobs of the published schedules: sizes of tiles and numbers of virtual threads."""

from collections.abc import Mapping
from dataclasses import dataclass

from tuneloom.tuners.kernel.space import KnobValue, Space
from tuneloom_vta.configuration import Configuration
from tuneloom_vta.schedules.workloads import Convolution

_THREADS = (1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Rows, columns, blocks of channels in and out of a tile; threads over channels and over rows."""

    tile_h: int
    tile_w: int
    tile_ci: int
    tile_co: int
    oc_nthread: int
    h_nthread: int

    @classmethod
    def of(cls, configuration: Mapping[str, KnobValue]) -> "Knobs":
        """The knobs of a configuration of the space."""
        return cls(**{name: int(value) for name, value in configuration.items()})


def space_of(workload: Convolution, configuration: Configuration) -> Space:
    """Every tile that divides its extent and every number of threads; what fails is not left out."""
    blocks_in, blocks_out = workload.blocks(configuration)
    return Space(
        {
            "tile_h": _divisors(workload.out_height),
            "tile_w": _divisors(workload.out_width),
            "tile_ci": _divisors(blocks_in),
            "tile_co": _divisors(blocks_out),
            "oc_nthread": _THREADS,
            "h_nthread": _THREADS,
        }
    )


def _divisors(extent: int) -> list[int]:
    return [size for size in range(1, extent + 1) if extent % size == 0]
