"""Clusters that run code for anybody are refused: tried on Ray's own central process, without its nodes."""

import base64
import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tuneloom.errors import FarmError

ray = pytest.importorskip("ray", reason="Ray is not installed; install tuneloom[farm]", exc_type=ImportError)

TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


@contextmanager
def central_process(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """The address of a new one, which listens on a free port."""
    program = Path(ray.__file__).parent / "core" / "src" / "ray" / "gcs" / "gcs_server"
    options = {
        "log_dir": folder,
        "session-dir": folder,
        "config_list": base64.b64encode(b"{}").decode(),
        "gcs_server_port": 0,
        "metrics-agent-port": 1,
        "node-ip-address": "127.0.0.1",
        "session-name": "test",
        "ray-commit": "none",
        "node-id": secrets.token_hex(28),
    }
    own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    words = [str(program), *(f"--{name}={value}" for name, value in options.items())]
    process = subprocess.Popen(
        words, env={**own, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield f"127.0.0.1:{_port_of(process, folder)}"
    finally:
        process.kill()
        process.wait()


def _port_of(process: "subprocess.Popen[bytes]", folder: Path) -> int:
    """Ask the system where it listens; it says so nowhere else until it has nodes."""
    import psutil

    while process.poll() is None:
        for connection in psutil.Process(process.pid).net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN:
                return int(connection.laddr.port)
    raise AssertionError(f"Ray's central process ended with {process.returncode}")


def test_a_cluster_without_a_token_is_refused(tmp_path: Path) -> None:
    from tuneloom.engine.ray.cluster import connect

    with (
        central_process(tmp_path, {}) as address,
        pytest.raises(FarmError, match="runs code for anyone who can reach it; start it with a token"),
    ):
        connect(address)


def test_a_cluster_with_a_token_lets_nobody_in_without_it(tmp_path: Path) -> None:
    from tuneloom.engine.ray.cluster import lets_anybody_in

    with central_process(tmp_path, TOKEN) as address:
        assert not lets_anybody_in(address)


@pytest.mark.parametrize("knock", ["raise SystemExit('broken')", "import os; os.kill(os.getpid(), 9)"])
def test_a_cluster_of_which_nobody_can_tell_whether_it_asks_for_a_token_is_refused(
    knock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tuneloom.engine.ray import cluster

    monkeypatch.setattr(cluster, "_KNOCK", knock)
    with pytest.raises(FarmError, match=r"can't tell whether .* asks for a token .* --insecure"):
        cluster.lets_anybody_in("127.0.0.1:1")
