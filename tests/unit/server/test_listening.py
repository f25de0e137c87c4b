"""A server that says where it listens can be called there."""

import socket
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from tuneloom.server.running import serve
from tuneloom.server.settings import ServerSettings


class _EnoughError(Exception):
    pass


def test_a_server_can_be_called_as_soon_as_its_address_is_told(settings: ServerSettings) -> None:
    def call(address: str) -> None:
        where = urlsplit(address)
        socket.create_connection((where.hostname, where.port)).close()
        raise _EnoughError

    with pytest.raises(_EnoughError):
        serve(replace(settings, executors=0, port=0), call)
