"""What is computed: convolutions with bias, shift and clipping, and products as their simplest case."""

from dataclasses import dataclass
from math import log2, sqrt

from tuneloom_vta.configuration import Configuration
from tuneloom_vta.errors import ScheduleError

_SPREAD = 5461.0  # standard deviation of a product of two even int8 values
_WANTED = 64.0  # standard deviation of results after the shift


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution with a square kernel, int8 in and out.

    Results are `(sum >> shift) + bias`, clipped to 8 bits, and at least 0 with `relu`. With
    `sums` they are the 32-bit sums themselves, in four planes of bytes, the lowest first: the
    accelerator stores nothing wider.
    """

    name: str
    height: int
    width: int
    in_channels: int
    out_channels: int
    kernel: int = 1
    padding: int = 0
    stride: int = 1
    relu: bool = True
    sums: bool = False

    def __post_init__(self) -> None:
        if min(self.height, self.width, self.in_channels, self.out_channels, self.kernel, self.stride) < 1:
            raise ScheduleError(f"{self.name}: sizes must be positive")
        if self.padding < 0 or min(self.out_height, self.out_width) < 1:
            raise ScheduleError(f"{self.name}: nothing is left of {self.height} x {self.width}")

    @property
    def out_height(self) -> int:
        """Rows of the result."""
        return (self.height + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def out_width(self) -> int:
        """Columns of the result."""
        return (self.width + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def planes(self) -> int:
        """Bytes of one result."""
        return 4 if self.sums else 1

    @property
    def shift(self) -> int:
        """Right shift of sums that leaves most results of random data inside 8 bits."""
        products = self.in_channels * self.kernel**2
        return max(round(log2(sqrt(products) * _SPREAD / _WANTED)), 0)

    def blocks(self, configuration: Configuration) -> tuple[int, int]:
        """Blocks of channels in and out; raises ScheduleError where channels are no whole blocks."""
        for count, block in (
            (self.in_channels, configuration.block_in),
            (self.out_channels, configuration.block_out),
        ):
            if count % block:
                raise ScheduleError(f"{self.name}: {count} channels are no multiple of {block}")
        return self.in_channels // configuration.block_in, self.out_channels // configuration.block_out


def dense(name: str, inputs: int, outputs: int) -> Convolution:
    """A product of a vector (a batch of them) with a matrix."""
    return Convolution(name=name, height=1, width=1, in_channels=inputs, out_channels=outputs)


def _layer(number: int, size: int, channels: tuple[int, int], kernel: int, stride: int) -> Convolution:
    return Convolution(
        name=f"resnet18-c{number}",
        height=size,
        width=size,
        in_channels=channels[0],
        out_channels=channels[1],
        kernel=kernel,
        padding=kernel // 2,
        stride=stride,
    )


RESNET18 = (
    _layer(2, 56, (64, 64), 3, 1),
    _layer(3, 56, (64, 128), 3, 2),
    _layer(4, 56, (64, 128), 1, 2),
    _layer(5, 28, (128, 128), 3, 1),
    _layer(6, 28, (128, 256), 3, 2),
    _layer(7, 28, (128, 256), 1, 2),
    _layer(8, 14, (256, 256), 3, 1),
    _layer(9, 14, (256, 512), 3, 2),
    _layer(10, 14, (256, 512), 1, 2),
    _layer(11, 7, (512, 512), 3, 1),
)
"""The ten different convolutions of ResNet-18 after its first layer."""
