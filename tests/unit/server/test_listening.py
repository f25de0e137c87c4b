"""A server that says where it listens can be called there."""

import socket
from contextlib import closing
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI

from tuneloom.server.running import _configuration, _listener, serve
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


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_beginning(settings: ServerSettings) -> None:
    chosen = replace(settings, port=0)
    with (
        closing(_listener(_configuration(FastAPI(), chosen), chosen)) as listener,
        socket.create_connection(listener.getsockname()),
        closing(listener.accept()[0]) as connection,
    ):
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
