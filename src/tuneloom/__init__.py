"""Tuneloom weaves the stages of many tuning jobs through shared hosts and devices."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuneloom.client import AsyncClient, Client
    from tuneloom.session import Session

__version__ = "0.1.0"
__all__ = ["AsyncClient", "Client", "Session", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the ways in only when they are asked for: workers don't need them."""
    if name == "Session":
        from tuneloom.session import Session

        return Session
    if name in ("AsyncClient", "Client"):
        from tuneloom import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
