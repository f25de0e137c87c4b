"""Addresses are limited until it is known who asks; whose token is valid is limited by that token."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tuneloom.errors import InputError
from tuneloom.server.access.rates import Buckets
from tuneloom.server.building import build_app
from tuneloom.server.running import _configuration
from tuneloom.server.settings import ServerSettings, read_settings

from .conftest import Served

SELF = "/api/v1/self"
Reached = Callable[..., TestClient]


@pytest.fixture
def slow(settings: ServerSettings) -> ServerSettings:
    """Two requests, and no more for a long time."""
    return replace(settings, rate=0.001, burst=2)


@pytest.fixture
def reached(slow: ServerSettings) -> Reached:
    """Clients of one server, each at an address of its own; behind proxies if there are any."""
    configured: dict[tuple[str, ...], object] = {}

    def client(address: str = "192.0.2.1", proxies: tuple[str, ...] = ()) -> TestClient:
        settings = replace(slow, proxies=proxies)
        if proxies not in configured:
            configured[proxies] = _configuration(build_app(settings), settings).loaded_app
        return TestClient(configured[proxies], client=(address, 50000))  # type: ignore[arg-type]

    return client


def made_up(number: int) -> dict[str, str]:
    """Credentials that nobody was given."""
    return {"Authorization": f"Bearer tl_{number:016x}_{'x' * 43}"}


def statuses(client: TestClient, *headers: dict[str, str], path: str = SELF) -> list[int]:
    return [client.get(path, headers=each).status_code for each in headers]


def test_a_token_that_asks_too_often_is_told_to_wait(served: Served, reached: Reached) -> None:
    client = reached()
    assert statuses(client, *[served.headers()] * 3) == [200, 200, 429]
    assert statuses(client, served.headers("spinners")) == [200]


def test_made_up_tokens_of_one_address_share_one_limit(reached: Reached) -> None:
    assert statuses(reached(), *map(made_up, range(4))) == [401, 401, 429, 429]
    assert statuses(reached("192.0.2.2"), made_up(5)) == [401]


def test_made_up_sessions_of_one_address_share_one_limit(reached: Reached) -> None:
    cookies = [{"Cookie": f"tuneloom={number:043}"} for number in range(4)]
    assert statuses(reached(), *cookies) == [401, 401, 429, 429]
    assert statuses(reached("192.0.2.2"), *cookies, path="/api/v1/session") == [200, 200, 429, 429]


def test_wrong_tokens_at_the_login_are_limited_by_address(reached: Reached) -> None:
    client = reached()
    answers = [client.post("/api/v1/session", json={"token": f"tl_{n}"}).status_code for n in range(3)]
    assert answers == [401, 401, 429]


def test_valid_tokens_of_one_address_do_not_use_up_its_limit(served: Served, reached: Reached) -> None:
    client = reached()
    people = [served.headers(who) for who in ("weavers", "spinners", "reader", "root")]
    assert statuses(client, *people, *people) == [200] * 8
    assert statuses(client, made_up(1)) == [401]


def test_an_exhausted_token_tells_nothing_about_made_up_ones(served: Served, reached: Reached) -> None:
    client = reached()
    assert statuses(client, *[served.headers()] * 5)[-1] == 429
    assert statuses(client, made_up(1)) == [401]


def test_all_addresses_of_one_ipv6_network_share_one_limit(reached: Reached) -> None:
    for number in (1, 2):
        assert statuses(reached(f"2001:db8:0:7::{number}"), made_up(number)) == [401]
    assert statuses(reached("2001:db8:0:7:8::9"), made_up(3)) == [429]
    assert statuses(reached("2001:db8:0:8::1"), made_up(3)) == [401]


def test_forwarded_addresses_of_strangers_are_not_believed(reached: Reached) -> None:
    headers = [made_up(number) | {"X-Forwarded-For": f"10.0.0.{number}"} for number in range(4)]
    assert statuses(reached("127.0.0.1"), *headers) == [401, 401, 429, 429]


def test_forwarded_addresses_of_a_proxy_are_limited_one_by_one(reached: Reached) -> None:
    client = reached("10.1.2.3", proxies=("10.1.0.0/16",))
    headers = [made_up(number) | {"X-Forwarded-For": f"192.0.2.{number % 2}"} for number in range(6)]
    assert statuses(client, *headers) == [401, 401, 401, 401, 429, 429]


def test_proxies_are_addresses_or_networks(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('proxies = ["127.0.0.1", "10.0.0.0/8"]\n')
    assert read_settings(file, {}).proxies == ("127.0.0.1", "10.0.0.0/8")
    file.write_text('proxies = ["*"]\n')
    with pytest.raises(InputError, match="'proxies' must be a list of IP addresses or networks"):
        read_settings(file, {})


def test_a_bucket_fills_again() -> None:
    buckets = Buckets(rate=2.0, burst=1)
    assert [buckets.wait_s("a", at_s) for at_s in (0.0, 0.1, 0.5)] == [0.0, 0.4, 0.0]
