"""The client in Python against the real application, without a network in between."""

import asyncio
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
import uvicorn

from support.models.onnx_files import network_input, write_network
from tuneloom.app.hosting.bundles import packed
from tuneloom.cli.main import main
from tuneloom.cli.remote.jobs import short_name
from tuneloom.client import AsyncClient, Client
from tuneloom.client.exchange import require_version
from tuneloom.client.logins import keep_token, logins_file, token_for
from tuneloom.errors import InputError, OutputError, ServiceError
from tuneloom.store import JobStatus

from .conftest import Served

MOCK = "mock:tasks=1,size=8"


@pytest.fixture
def url(served: Served) -> Iterator[str]:
    """The address of a server that listens."""
    config = uvicorn.Config(served.client.app, port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    listener = config.bind_socket()
    listener.listen()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    listener.close()


@pytest.fixture
def client(served: Served, url: str) -> Iterator[Client]:
    """A client of the weavers."""
    with Client(url, served.tokens["weavers"]) as found:
        yield found


def finished(served: Served, job: str, folder: Path) -> None:
    """Let a job end with a bundle."""
    folder.mkdir()
    (folder / "bundle.json").write_text("{}")
    content = b"".join(packed(folder))
    digest = served.store.put_blob([content], f"bundle:{job}")
    served.store.keep_bundle(job, digest, len(content))
    served.store.set_job(f"{job}.1", JobStatus.FINISHED)


def test_submit_wait_and_fetch(served: Served, client: Client, tmp_path: Path) -> None:
    job = client.submit(MOCK, trials=4, name="loom")
    finished(served, job.id, tmp_path / "made")
    assert job.wait().status == "finished"
    folder = job.fetch(tmp_path / "out")
    assert (folder / "bundle.json").read_text() == "{}"
    with pytest.raises(OutputError, match="not empty"):
        job.fetch(tmp_path / "out")
    assert [found.id for found in client.jobs(status=["finished"])] == [job.id]


def busy(*waits: str, text: str = "") -> httpx.MockTransport:
    """A server that asks its callers to wait so many seconds, one by one, before it answers."""
    left = iter(waits)

    def answer(_: httpx.Request) -> httpx.Response:
        wait = next(left, None)
        if wait is None and text:
            return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, text=text)
        if wait is None:
            return httpx.Response(200, json={"devices": ["cpu"]})
        told = {"Content-Type": "application/problem+json", "Retry-After": wait}
        return httpx.Response(429, headers=told, json={"detail": f"try again in {wait} s"})

    return httpx.MockTransport(answer)


def test_who_asks_too_often_waits_as_the_server_says() -> None:
    with Client("http://farm", "t", transport=busy("0", "0")) as client:
        assert client.devices() == ["cpu"]

    async def devices() -> list[object]:
        async with AsyncClient("http://farm", "t", transport=busy("0", "0")) as client:
            return list(await client.devices())

    assert asyncio.run(devices()) == ["cpu"]


def test_who_listens_too_often_waits_as_well() -> None:
    end = 'id: 1\nevent: end\ndata: {"status": "finished"}\n\n'
    with Client("http://farm", "t", transport=busy("0", text=end)) as client:
        assert [event.name for event in client.stream("/jobs/j/events")] == ["end"]

    async def names() -> list[str]:
        async with AsyncClient("http://farm", "t", transport=busy("0", text=end)) as client:
            return [event.name async for event in client.stream("/jobs/j/events")]

    assert asyncio.run(names()) == ["end"]


def test_nobody_waits_for_minutes_without_a_word() -> None:
    with (
        Client("http://farm", "t", transport=busy("1000")) as client,
        pytest.raises(ServiceError, match="try again in 1000 s"),
    ):
        client.devices()


def test_the_same_without_waiting(served: Served, url: str, tmp_path: Path) -> None:
    model = write_network(tmp_path / "net.onnx")

    async def everything() -> str:
        async with AsyncClient(url, served.tokens["weavers"]) as client:
            job = await client.submit(model, trials=4)
            finished(served, job.id, tmp_path / "made")
            await job.wait()
            await job.fetch(tmp_path / "out")
            assert [found.id async for found in client.jobs()] == [job.id]
            return str(job.details["model"])

    assert asyncio.run(everything()) == hashlib.sha256(model.read_bytes()).hexdigest()
    assert (tmp_path / "out" / "bundle.json").exists()


def test_samples_are_uploaded_with_the_job_that_needs_them(
    served: Served, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = write_network(tmp_path / "net.onnx")
    np.savez(tmp_path / "noise.npz", x=network_input())
    digest = hashlib.sha256((tmp_path / "noise.npz").read_bytes()).hexdigest()
    job = client.submit(model, trials=4, dtype="int8", samples=str(tmp_path / "noise.npz"))
    assert served.store.jobs(job.id)[0].spec["files"]["samples.npz"] == digest
    monkeypatch.setenv("TUNELOOM_TOKEN", served.tokens["weavers"])
    words = ["--dtype", "int8", "--samples", str(tmp_path / "noise.npz"), "--server", client.url]
    assert main(["submit", str(model), *words]) == 0
    assert {job.spec["files"]["samples.npz"] for job in served.store.submitted_jobs("weavers")} == {digest}
    with pytest.raises(InputError, match="noise: no such file; check the path") as caught:
        client.submit(model, dtype="int8", samples="noise")
    assert caught.value.field == "samples"


def test_what_the_server_refuses_is_an_input_error_with_its_field(client: Client) -> None:
    with pytest.raises(InputError, match="trials") as caught:
        client.submit(MOCK, trials=0)
    assert caught.value.field == "trials"
    with pytest.raises(InputError, match="no such file"):
        client.submit("missing.onnx")
    with pytest.raises(InputError, match="no job 'amber-heron-42'"):
        client.job("amber-heron-42")


def test_a_wrong_token_a_missing_server_and_another_version_are_told_apart(url: str) -> None:
    with Client(url, "tl_wrong") as client, pytest.raises(ServiceError, match="does not accept this token"):
        client.check()
    with Client("http://127.0.0.1:9", "tl_any") as client, pytest.raises(ServiceError, match="can't reach"):
        client.check()
    with pytest.raises(ServiceError, match=r"version 9\.9"):
        require_version({"version": "9.9.0"}, url)
    strange = httpx.MockTransport(lambda _request: httpx.Response(404, text="nginx"))
    with (
        Client("http://other", "t", transport=strange) as client,
        pytest.raises(ServiceError, match="no server"),
    ):
        client.check()


def test_tokens_are_kept_where_nobody_else_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNELOOM_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TUNELOOM_TOKEN", raising=False)
    keep_token("http://farm", "tl_1")
    assert os.stat(logins_file()).st_mode & 0o777 == 0o600
    assert token_for("http://farm") == "tl_1"
    with pytest.raises(InputError, match="tuneloom login http://other"):
        token_for("http://other")
    logins_file().chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        token_for("http://farm")


def test_the_command_line_submits_lists_and_fetches(
    served: Served,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TUNELOOM_TOKEN", served.tokens["weavers"])
    assert main(["--server", url, "submit", MOCK, "--trials", "4"]) == 0
    job = capsys.readouterr().out.strip()
    finished(served, job, tmp_path / "made")
    assert main(["--server", url, "watch", job]) == 0
    assert main(["--server", url, "fetch", job, "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert main(["--server", url, "jobs", "--json"]) == 0
    assert [each["status"] for each in json.loads(capsys.readouterr().out)] == ["finished"]
    assert main(["--server", url, "cancel", job]) == 2
    assert "finished" in capsys.readouterr().err


def test_several_devices_make_a_job_each_and_several_shapes_make_one(
    served: Served, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TUNELOOM_TOKEN", served.tokens["weavers"])
    words = ["submit", MOCK, "--wait-for-devices", "--device", "a", "--device", "b", "--shape", "x=1|8,3"]
    assert main(["--server", url, *words, "--json"]) == 0
    text = capsys.readouterr().out.replace("}\n{", "},{")
    told = json.loads(f"[{text}]")
    assert [(job["name"], job["device"]) for job in told] == [("mock-a", "a"), ("mock-b", "b")]
    for job in told:
        spec = served.store.jobs(job["id"])[0].spec
        assert (spec["shapes"], spec["more_shapes"]) == ({"x": [1, 3]}, [{"x": [8, 3]}])


@pytest.mark.parametrize(
    ("model", "name"),
    [("nets/net.onnx", "net"), ("zoo:resnet18", "resnet18"), (MOCK, "mock"), ("ab" * 32, "abababababab")],
)
def test_a_model_has_a_short_name(model: str, name: str) -> None:
    assert short_name(model) == name


def test_a_command_for_runs_of_this_machine_refuses_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--server", "http://farm", "runs"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "tuneloom: 'runs' works with runs of this machine; omit --server; see `tuneloom --help`\n"
    )


def test_the_command_line_says_in_one_line_which_server_it_misses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TUNELOOM_SERVER", raising=False)
    assert main(["jobs"]) == 2
    assert capsys.readouterr().err == "tuneloom: which server? Give --server URL, or set TUNELOOM_SERVER\n"


@pytest.mark.parametrize("separator", ["\u2028", "\x85"])
def test_events_are_separated_by_line_feeds_alone(separator: str) -> None:
    event = f'event: view\nid: 3-a\ndata: {{"a":\ndata: "b{separator}c"}}\n\n'
    text = f": hello\n\nretry: 2000\n\n{event}: still here\n\n"
    headers = {"Content-Type": "text/event-stream"}
    answer = httpx.MockTransport(lambda _: httpx.Response(200, text=text, headers=headers))
    with Client("http://farm:8321", "tl_x", transport=answer) as client:
        found = [(event.name, event.id, event.data) for event in client.stream("/events")]
    assert found == [("view", "3-a", {"a": f"b{separator}c"})]
