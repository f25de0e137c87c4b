"""Tuneloom weaves the stages of many tuning jobs through shared hosts and devices."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuneloom.session import Session

__version__ = "0.1.0"
__all__ = ["Session", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the session only when it is asked for: workers don't need it."""
    if name == "Session":
        from tuneloom.session import Session

        return Session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
