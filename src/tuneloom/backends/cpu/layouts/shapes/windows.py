"""The window of a convolution or pooling, moving over an image."""

from dataclasses import dataclass
from typing import Any

from tuneloom.compiler.lazy import te


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Kernel size, stride, dilation, and padding as (top, left, bottom, right)."""

    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)

    def reach(self, axis: int) -> int:
        """How many points the window spans along an axis (0 down, 1 across)."""
        return (self.kernel[axis] - 1) * self.dilation[axis] + 1

    def output_size(self, height: int, width: int) -> tuple[int, int]:
        """How many places the window has."""
        top, left, bottom, right = self.padding
        rows = (height + top + bottom - self.reach(0)) // self.stride[0] + 1
        cols = (width + left + right - self.reach(1)) // self.stride[1] + 1
        return rows, cols

    def place(self, y: Any, x: Any, kh: Any, kw: Any) -> tuple[Any, Any]:
        """Where in the padded image a point of the window lies."""
        return (
            y * self.stride[0] + kh * self.dilation[0],
            x * self.stride[1] + kw * self.dilation[1],
        )

    def inside(self, position: Any, axis: int, extent: int) -> Any:
        """How many points of the window lie in the image itself, undilated."""
        start = position * self.stride[axis] - self.padding[axis]
        return te.min(start + self.kernel[axis], extent) - te.max(start, 0)

    def padded_to(self, height: int, width: int, size: tuple[int, int]) -> "Window":
        """The same window with so much padding at the end that it has `size` places."""
        top, left, bottom, right = self.padding
        need_y = (size[0] - 1) * self.stride[0] + self.reach(0) - height - top
        need_x = (size[1] - 1) * self.stride[1] + self.reach(1) - width - left
        return Window(
            kernel=self.kernel,
            stride=self.stride,
            dilation=self.dilation,
            padding=(top, left, max(bottom, need_y), max(right, need_x)),
        )


def window_of(attrs: Any, kernel: tuple[int, ...]) -> Window:
    """The window that the attributes of a convolution or pooling describe; a line has one row."""
    strides, dilation = _both(attrs.strides), _both(attrs.dilation)
    padding = [int(size) for size in attrs.padding]
    top, left, bottom, right = padding if len(padding) == 4 else (0, padding[0], 0, padding[1])
    return Window(
        kernel=(kernel[0], kernel[1]),
        stride=strides,
        dilation=dilation,
        padding=(top, left, bottom, right),
    )


def _both(sizes: Any) -> tuple[int, int]:
    """Down and across; a line has only the latter."""
    first, *rest = (int(size) for size in sizes)
    return (first, rest[0]) if rest else (1, first)
