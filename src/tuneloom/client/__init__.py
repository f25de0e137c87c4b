"""The Python way to a server: submit a model there, wait, fetch the bundle."""

from tuneloom.client.asynchronous import AsyncClient, AsyncRemoteJob
from tuneloom.client.synchronous import Client, RemoteJob

__all__ = ["AsyncClient", "AsyncRemoteJob", "Client", "RemoteJob"]
