"""Windows that move over images."""

import pytest

from tuneloom.backends.cpu.layouts.shapes.windows import Window


@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "padding", "size", "expected"),
    [(3, 1, 1, 1, 56, 56), (7, 2, 1, 3, 224, 112), (3, 2, 1, 0, 111, 55), (3, 1, 2, 2, 14, 14)],
)
def test_output_size_counts_places(
    kernel: int, stride: int, dilation: int, padding: int, size: int, expected: int
) -> None:
    window = Window(
        kernel=(kernel, kernel),
        stride=(stride, stride),
        dilation=(dilation, dilation),
        padding=(padding, padding, padding, padding),
    )
    assert window.output_size(size, size) == (expected, expected)


def test_padding_grows_until_the_wanted_places_exist() -> None:
    window = Window(kernel=(3, 3), stride=(2, 2))
    grown = window.padded_to(12, 12, (6, 6))
    assert grown.padding == (0, 0, 1, 1)
    assert grown.output_size(12, 12) == (6, 6)


def test_enough_padding_is_left_alone() -> None:
    window = Window(kernel=(3, 3), padding=(1, 1, 1, 1))
    assert window.padded_to(8, 8, (8, 8)) == window
