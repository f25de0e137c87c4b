"""How wide the vectors of a row are, by its length."""

import pytest

from tuneloom.backends.cpu.templates.pieces import best_width


@pytest.mark.parametrize("extent", [32, 33, 197, 508])
def test_long_rows_have_the_widest_vectors_whatever_is_left_over(extent: int) -> None:
    assert best_width(extent, 16) == 16


@pytest.mark.parametrize(("extent", "width"), [(16, 16), (24, 8), (8, 8), (28, 4), (12, 4)])
def test_short_rows_have_vectors_that_leave_nothing(extent: int, width: int) -> None:
    assert best_width(extent, 16) == width


@pytest.mark.parametrize(("extent", "width"), [(1, 1), (3, 2), (7, 4), (14, 8), (22, 16)])
def test_short_rows_of_odd_length_have_one_vector_and_some_values(extent: int, width: int) -> None:
    assert best_width(extent, 16) == width
