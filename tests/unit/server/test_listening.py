"""A server that says where it listens can be called there."""

import socket
from contextlib import closing
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI

from tuneloom.cli.main import main
from tuneloom.errors import InputError, TuneloomError
from tuneloom.server.background.executors import Executors
from tuneloom.server.running import _configuration, _listener, serve
from tuneloom.server.settings import ServerSettings
from tuneloom.store import open_store


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


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"host": "no.such.host.invalid"},
            "can't listen on no.such.host.invalid:0: .*; choose",
        ),
        (
            {"certificate": "no.pem", "private_key": "no.key"},
            "no.pem and no.key for TLS: No such file",
        ),
        ({"files": "nonsense://bucket"}, "files can't be kept at nonsense://bucket"),
        ({"farm": "missing.toml"}, "can't read missing.toml: No such file or directory"),
    ],
)
def test_a_start_that_fails_says_why_and_starts_nothing(
    settings: ServerSettings, changes: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Executors, "__enter__", lambda _self: pytest.fail("an executor was started"))
    changed = replace(settings, port=0, **changes)  # type: ignore[arg-type]
    with pytest.raises(TuneloomError, match=words):
        serve(changed, lambda _address: pytest.fail("told too early"))


def test_the_first_token_is_made_only_when_it_can_be_shown(
    settings: ServerSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["serve", "--port", "0", "--store", str(settings.store)]
    assert main([*words, "--farm", "missing.toml"]) == 2
    with closing(open_store(settings.store)) as store:
        assert store.tenants() == []


def test_a_port_that_is_taken_is_named(settings: ServerSettings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"can't listen on 127.0.0.1:{port}: Address already in use"):
            serve(replace(settings, port=port))


def test_a_dry_run_of_serving_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--dry-run", "--port", "0"]) == 2
    assert "--dry-run is for `tuneloom serve gc`" in capsys.readouterr().err
