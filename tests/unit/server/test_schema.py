"""The API answers what its description says, whatever is asked: no 5xx, no undocumented answer."""

import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tuneloom.server.access.credentials import make_token
from tuneloom.server.building import build_app, described
from tuneloom.server.settings import ServerSettings
from tuneloom.store import Role, TenantLimits, open_store

EXAMPLES = int(os.environ.get("TUNELOOM_SCHEMA_EXAMPLES", "4"))
"""How many requests are made up for each operation; `make schema-test` asks for many more."""

PHASES = [Phase.explicit, Phase.generate] if EXAMPLES >= 10 else [Phase.generate]
"""With many examples, the boundaries of every parameter are tried one by one, too."""

FOLDER = tempfile.TemporaryDirectory(prefix="tuneloom-schema-")
PLACE = str(Path(FOLDER.name) / "store.db")
APP = build_app(ServerSettings(store=PLACE, tuners=("tvm", "mock"), rate=1e6, burst=10**6))
SCHEMA = schemathesis.openapi.from_dict(described(APP)).exclude(path_regex="/events$")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a server that listens."""
    config = uvicorn.Config(APP, port=0, log_level="error", lifespan="off")
    server, listener = uvicorn.Server(config), config.bind_socket()
    listener.listen()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    listener.close()


@pytest.fixture(scope="module")
def token() -> Iterator[str]:
    """An administrator's, who may ask everything."""
    store = open_store(PLACE)
    store.add_tenant("weavers", TenantLimits(jobs_at_once=100_000, trials_a_day=10**9))
    yield make_token(store, "weavers", "test", Role.ADMINISTRATOR)[1]
    store.close()
    APP.state.service.close()
    FOLDER.cleanup()


@SCHEMA.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=PHASES,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_a_documented_one(case: Any, token: str, url: str) -> None:
    answer = case.call(base_url=url, headers={"Authorization": f"Bearer {token}"})
    checks = [status_code_conformance, content_type_conformance, response_schema_conformance]
    case.validate_response(answer, checks=[schemathesis.checks.not_a_server_error, *checks])
