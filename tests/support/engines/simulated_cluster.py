"""Several machines on one, for tests and benchmarks, by Ray's own simulation of nodes."""

import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tuneloom.engine.ray.cluster import RayCluster, connect, use_new_token, use_own_niceness

_STORE_BYTES = 128 << 20


class SimulatedCluster:
    """A head and more nodes, each with Ray's processes of its own; protected by a token.

    `connect` joins it as a driver on the head; one driver at a time.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._cluster = _several_nodes(_node(names[0]))
        self._nodes: dict[str, Any] = {names[0]: self._cluster.head_node}
        self._apart: list[subprocess.Popen[bytes]] = []
        for name in names[1:]:
            self.add(name)

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def connect(self) -> RayCluster:
        """Join as a driver."""
        return connect(self.address)

    def add(self, name: str) -> None:
        """A machine joins the cluster; on a busy one, Ray may give up waiting for it the first time."""
        try:
            self._nodes[name] = self._cluster.add_node(wait=False, **_node(name))
        except Exception:
            self._nodes[name] = self._cluster.add_node(wait=False, **_node(name))

    def add_apart(self, name: str) -> None:
        """A machine joins some time later; whoever asks for it does not wait, in any thread."""
        words = [f"--node-name={name}", "--num-cpus=1", f"--object-store-memory={_STORE_BYTES}"]
        self._apart.append(_start_node(self.address, *words))

    def kill(self, name: str) -> None:
        """A machine goes down with everything on it."""
        self._cluster.remove_node(self._nodes.pop(name), allow_graceful=False)

    def close(self) -> None:
        """End all of Ray's processes."""
        for process in self._apart:
            process.terminate()
            process.wait()
        with suppress(Exception):
            self._cluster.shutdown()


def _node(name: str) -> dict[str, Any]:
    return {
        "node_name": name,
        "num_cpus": 1,
        "object_store_memory": _STORE_BYTES,
        "include_dashboard": False,
    }


def _several_nodes(head: Mapping[str, Any]) -> Any:
    """Ray's simulation of a cluster on this machine, with such a head and a token of its own."""
    from ray.cluster_utils import Cluster as SeveralNodes

    use_new_token()
    use_own_niceness()
    return SeveralNodes(initialize_head=True, head_node_args=dict(head))


def _start_node(address: str, *words: str) -> "subprocess.Popen[bytes]":
    """Let a process join a cluster as a node; whoever gets it ends it."""
    command = [
        sys.executable,
        "-m",
        "ray.scripts.scripts",
        "start",
        f"--address={address}",
        "--block",
        *words,
    ]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
