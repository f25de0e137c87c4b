"""Numbers as people read them."""

import math

TIME_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def duration(seconds: float | None) -> str:
    """A time of any size: `2 h 05 min`, `3 min 20 s`, `12.4 s`, `8.31 ms`, `–` for none."""
    if seconds is None:
        return "–"
    if seconds >= 3600:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"
    if seconds >= 120:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    unit, size = time_unit(seconds)
    return f"{three_digits(seconds / size)} {unit}"


def time_unit(seconds: float) -> tuple[str, float]:
    """The unit in which a time is a number of at least 1, and its size in seconds."""
    for unit, size in TIME_UNITS:
        if abs(seconds) >= size * 0.9995:
            return unit, size
    return TIME_UNITS[-1] if seconds else TIME_UNITS[0]


def three_digits(value: float) -> str:
    """Three significant digits, thousands apart."""
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}".replace(",", "\N{THIN SPACE}")
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def brief(value: float) -> str:
    """Three significant digits without idle zeros, for axes."""
    text = three_digits(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def times(ratio: float | None) -> str:
    """A speed-up: `3.42×`, `–` for none."""
    return "–" if ratio is None else f"{three_digits(ratio)}×"


def percent(share: float) -> str:
    """A share of 1 as a percentage; something is never shown as nothing."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{share * 100:.1f} %" if share < 0.0995 else f"{share * 100:.0f} %"


def count(number: int) -> str:
    """A whole number, thousands apart."""
    return f"{number:,}".replace(",", "\N{THIN SPACE}")


def clipped(text: str, length: int) -> str:
    """Text of at most this length; the middle goes, since names differ at both ends."""
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[: length - 1 - tail]}…{text[len(text) - tail :]}"
