"""What surrounds every request: bounds, headers, ids, health and numbers."""

import json
import logging
import threading
from pathlib import Path

import pytest

from tuneloom.errors import InputError
from tuneloom.server.background.executors import Executors, Pauses
from tuneloom.server.running import serve
from tuneloom.server.settings import ServerSettings, read_settings

from .conftest import Served


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/self", "/nonesuch", "/api/v1/jobs/../../etc"])
def test_every_answer_has_safe_headers_and_an_id(served: Served, path: str) -> None:
    answer = served.client.get(path)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe-inline" not in answer.headers["content-security-policy"]
    assert len(answer.headers["x-request-id"]) == 16
    assert "access-control-allow-origin" not in answer.headers


def test_a_problem_names_its_request(served: Served) -> None:
    answer = served.client.get("/api/v1/self")
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_beyond_its_bound_is_refused(served: Served, announced: bool) -> None:
    body = b'{"model": "' + b"x" * 30_000 + b'"}'
    pieces = body if announced else iter([body[:10_000], body[10_000:]])
    headers = served.headers() | {"Content-Type": "application/json"}
    answer = served.client.post("/api/v1/jobs", headers=headers, content=pieces)
    assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")


def test_the_access_log_has_ids_and_no_secrets(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tuneloom.access"):
        served.client.get("/api/v1/self", headers=served.headers())
    (line,) = [json.loads(record.message) for record in caplog.records if record.name == "tuneloom.access"]
    assert (line["path"], line["status"], len(line["request"])) == ("/api/v1/self", 200, 16)
    assert line["token"] and served.tokens["weavers"].split("_", 2)[2] not in caplog.text


def test_health_needs_no_token_and_numbers_need_one(served: Served) -> None:
    assert served.client.get("/healthz").json() == {"status": "ok"}
    assert served.client.get("/readyz").json() == {"status": "ok"}
    assert served.client.get("/metrics").status_code == 401
    served.client.post("/api/v1/jobs", headers=served.headers(), json={"model": "mock:size=8"})
    text = served.client.get("/metrics", headers=served.headers("reader")).text
    assert 'tuneloom_jobs{state="waiting"} 1.0' in text
    assert 'tuneloom_requests_total{method="POST",route="submit_job",status="201"} 1.0' in text


def test_a_server_that_is_about_to_end_is_not_ready(served: Served) -> None:
    served.client.app.state.service.drain()  # type: ignore[attr-defined]
    assert served.client.get("/readyz").status_code == 503
    assert served.client.get("/healthz").status_code == 200


def test_settings_come_from_a_file_and_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('port = 9000\nrate = 5\ntuners = ["tvm", "mock"]\n')
    settings = read_settings(file, {"port": 9001, "host": None})
    assert (settings.port, settings.rate, settings.tuners) == (9001, 5, ("tvm", "mock"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prt = 1", "did you mean 'port'"),
        ("port = 70000", "65535"),
        ("rate = 0", "above 0"),
        ("port =", "TOML"),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        read_settings(file, {})
    assert "serve.toml" in str(caught.value)


def test_executors_get_what_the_server_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    class Process:
        pid = 1

        def __init__(self, words: list[str], **_: object) -> None:
            started.append(words)

        def terminate(self) -> None:
            """Nothing runs."""

        def wait(self, _timeout_s: float) -> int:
            return 0

        def poll(self) -> int | None:
            return None

    monkeypatch.setattr("subprocess.Popen", Process)
    settings = ServerSettings(
        executors=2, store="s.db", farm="farm.toml", device_cores=3, policy="sequential"
    )
    with Executors(settings):
        pass
    words = "executor --attached --policy sequential --device-cores 3 --store s.db --farm farm.toml"
    assert [" ".join(command[3:]) for command in started] == [words, words]


def test_a_farm_file_that_makes_no_sense_is_refused_before_anything_starts(tmp_path: Path) -> None:
    farm = tmp_path / "farm.toml"
    farm.write_text('engine = "loom"\n')
    with pytest.raises(InputError, match="engine"):
        serve(ServerSettings(port=0, store=str(tmp_path / "store.db"), farm=str(farm)))


def test_executors_that_die_at_once_are_started_more_and_more_rarely() -> None:
    pauses, now_s, starts = Pauses(), 0.0, []
    for pid in range(5):
        while not pauses.over(pid, now_s):
            now_s += 0.5
        starts.append(now_s)
    assert starts == [1.0, 3.0, 7.0, 15.0, 31.0]
    assert not pauses.over(9, now_s + 1000.0), "the pause is short again for one that lived"
    assert pauses.over(9, now_s + 1000.5)


class Process:
    """An executor as a server sees it; the first is dead when it is looked at."""

    def __init__(self, pid: int) -> None:
        self.pid, self.terminated = pid, False

    def poll(self) -> int | None:
        return 1 if self.pid == 0 else None

    def terminate(self) -> None:
        self.terminated = True

    def wait(self, _timeout_s: float) -> int:
        return 0


def test_an_executor_that_is_being_started_when_the_server_ends_is_ended_with_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processes: list[Process] = []
    restarting = threading.Event()

    def started(executors: Executors) -> Process:
        if processes:
            restarting.set()
            assert executors._ending.wait(300)
        processes.append(Process(len(processes)))
        return processes[-1]

    monkeypatch.setattr(Executors, "_started", started)
    monkeypatch.setattr(Pauses, "over", lambda *_: True)
    with Executors(ServerSettings(executors=1)) as executors:
        assert restarting.wait(300)
    assert executors._watcher is not None and not executors._watcher.is_alive()
    assert [process.pid for process in processes] == [0, 1] and processes[1].terminated
