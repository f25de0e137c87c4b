"""Tuneloom weaves the stages of many tuning jobs through shared hosts and devices."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuneloom.client import AsyncClient, Client
    from tuneloom.inference import InferenceSession
    from tuneloom.pytorch.compiling import compile
    from tuneloom.session import Session

__version__ = "0.2.0"
__all__ = ["AsyncClient", "Client", "InferenceSession", "Session", "__version__", "compile"]


def __getattr__(name: str) -> Any:
    """Import the ways in only when they are asked for: workers don't need them."""
    if name == "Session":
        from tuneloom.session import Session

        return Session
    if name == "InferenceSession":
        from tuneloom.inference import InferenceSession

        return InferenceSession
    if name == "compile":
        from tuneloom.tuners.tvm.importing.packages import needed

        needed("torch", "tuneloom.compile")
        from tuneloom.pytorch.compiling import compile

        return compile
    if name in ("AsyncClient", "Client"):
        from tuneloom import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
