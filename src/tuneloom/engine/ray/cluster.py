"""Everything that is asked of Ray; nothing else imports it."""

import os
import pickle
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tuneloom.engine.ray.agent import Agent
from tuneloom.engine.ray.artifacts import MissingArtifact, Receipt
from tuneloom.engine.ray.messages import (
    AgentLine,
    AgentSpec,
    FromAgent,
    Gone,
    Inbox,
    KeepFile,
    LiveNodes,
    Node,
    Order,
)
from tuneloom.errors import FarmError

_FETCHING_S = 20.0
_LISTING_S = 2.0
_ENDING_S = 5.0
_ANSWER_S = 5.0
_STORE_BYTES = 512 << 20
AUTO = "auto"
_MODE, _TOKEN, _TOKEN_FILE = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
_NEEDS_TOKEN = 77
_KNOCK = f"""
import sys, ray
try:
    ray._raylet.GcsClient(address=sys.argv[1])
except ray.exceptions.AuthenticationError:
    sys.exit({_NEEDS_TOKEN})
"""
_KNOCK_S = 120.0
_QUIET: dict[str, Any] = {"namespace": "tuneloom", "configure_logging": False, "log_to_driver": False}
_GROUPS = {"orders": 1, "reports": 1, "artifacts": 4, "clock": 1}


class AgentActor(Agent):
    """An agent as Ray's actor; it asks other agents for what they built itself."""

    def __init__(self, spec: AgentSpec) -> None:
        self._holders: dict[str, Any] = {}
        super().__init__(spec, self._ask_holder)

    def take(self, number: int, packed: Sequence[Order] | bytes, holders: Mapping[str, Any]) -> None:
        """Take orders as they travel, with the agents that have what they need."""
        self._holders.update(holders)
        orders: Sequence[Order] = pickle.loads(packed) if isinstance(packed, bytes) else packed
        self.order(number, [_received(order) for order in orders])

    def _ask_holder(self, receipt: Receipt) -> bytes:
        holder = self._holders.get(receipt.machine)
        if holder is None:
            raise MissingArtifact(receipt)
        asked = holder.artifact.options(concurrency_group="artifacts").remote(receipt.id)
        try:
            found: bytes | None = ray.get(asked, timeout=_FETCHING_S)
        except (RayError, GetTimeoutError) as error:
            raise MissingArtifact(receipt) from error
        if found is None:
            raise MissingArtifact(receipt)
        return found


class RayLine:
    """The line to one actor."""

    def __init__(self, handle: Any, inbox: Inbox) -> None:
        self._handle = handle
        self._inbox = inbox
        self._take = handle.take.options(concurrency_group="orders")
        self._reports = handle.reports.options(concurrency_group="reports")

    def ask_hello(self) -> None:
        self._deliver(self._handle.hello.remote())

    def ask_reports(self, patience_s: float) -> None:
        self._deliver(self._reports.remote(patience_s))

    def ask_clock(self) -> None:
        self._deliver(self._handle.clock.options(concurrency_group="clock").remote())

    def order(self, number: int, orders: Sequence[Order], holders: Mapping[str, AgentLine]) -> None:
        handles = {machine: line._handle for machine, line in holders.items() if isinstance(line, RayLine)}
        sent = self._take.remote(number, _packed(orders), handles)
        sent.future().add_done_callback(self._sent)

    def hang_up(self, *, politely: bool = False) -> None:
        if politely:
            with suppress(RayError):
                ray.get(self._handle.close.options(concurrency_group="clock").remote(), timeout=_ENDING_S)
        with suppress(RayError):
            ray.kill(self._handle)

    def _deliver(self, asked: Any) -> None:
        asked.future().add_done_callback(self._answered)

    def _sent(self, future: "Future[Any]") -> None:
        """Orders that did not arrive leave an agent waiting for ever: it is as good as gone."""
        if future.exception() is not None:
            self._answered(future)

    def _answered(self, future: "Future[Any]") -> None:
        error = future.exception()
        body = future.result() if error is None else Gone(reason=_reason(error))
        self._inbox.put(FromAgent(sender=self, body=body))


def connect(address: str | None, *, insecure: bool = False) -> "RayCluster":
    """Join the cluster at an address, or one that runs on this machine (`auto`); without one, start it here.

    Raises FarmError if it can't be reached, or lets in whoever reaches it and `insecure` is not set.
    """
    if address is None:
        # Ray listens on all interfaces, so even one that lives for this process alone gets a token.
        use_new_token()
        use_own_niceness()
        ray.init("local", num_cpus=1, include_dashboard=False, object_store_memory=_STORE_BYTES, **_QUIET)
        return RayCluster()
    found = _running_here() if address == AUTO else address
    _require_answer(found)
    if not insecure and lets_anybody_in(found):
        raise FarmError(
            f"the Ray cluster at {found} runs code for anyone who can reach it; start it with a token "
            "(docs/farm.md says how), or accept that with --insecure"
        )
    try:
        ray.init(address=found, **_QUIET)
    except (ConnectionError, RuntimeError, RayError) as error:
        raise FarmError(f"can't join the Ray cluster at {found}: {_first_line(error)}") from error
    return RayCluster()


def _be_quiet() -> None:
    """What becomes of machines is for reports; Ray would print its own view of it between ours."""
    ray._private.worker.print_to_stdstream = lambda *_, **__: None


def use_new_token() -> None:
    """Let this process, and what it starts, use a token that nobody else knows."""
    raylet: Any = ray._raylet
    os.environ.update({_MODE: "token", _TOKEN: secrets.token_hex(32)})
    raylet.Config.initialize("")  # Ray has read its environment when it was imported
    raylet.AuthenticationTokenLoader.instance().reset_cache()


def use_own_niceness() -> None:
    """Let agents of a cluster that is started here be as nice as this process is, not 15 levels nicer.

    They build and measure; whatever else runs on the machine would go before them.
    """
    os.environ.setdefault("RAY_worker_niceness", "0")


def _running_here() -> str:
    from ray._private.services import canonicalize_bootstrap_address

    found = canonicalize_bootstrap_address(AUTO) if _is_running() else None
    if found is None:
        raise FarmError(
            "no Ray cluster runs on this machine; start one with `ray start`, or give its address"
        )
    return str(found)


def _is_running() -> bool:
    from ray._private.services import find_gcs_addresses

    return bool(find_gcs_addresses()) or "RAY_ADDRESS" in os.environ


def _require_answer(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise FarmError(
            f"no Ray cluster answers at {address} (tried for {_ANSWER_S:g} s): {reason}"
        ) from error


def lets_anybody_in(address: str) -> bool:
    """Whether somebody without a token is let in; tried out, since only the cluster itself knows.

    Raises FarmError if the try says neither: a cluster is trusted only if it asked for a token.
    """
    stranger = {name: value for name, value in os.environ.items() if name not in (_TOKEN, _TOKEN_FILE)}
    words = [sys.executable, "-c", _KNOCK, address]
    try:
        done = subprocess.run(
            words, env={**stranger, _MODE: "disabled"}, capture_output=True, text=True, timeout=_KNOCK_S
        )
    except subprocess.TimeoutExpired as error:
        raise _undecided(address, f"no answer in {_KNOCK_S:g} s") from error
    if done.returncode not in (0, _NEEDS_TOKEN):
        raise _undecided(address, (done.stderr.strip().splitlines() or ["no message"])[-1][:200])
    return done.returncode == 0


def _undecided(address: str, reason: str) -> FarmError:
    return FarmError(
        f"can't tell whether the Ray cluster at {address} asks for a token ({reason}); try again, or accept "
        "that it may run code for anybody with --insecure"
    )


class RayCluster:
    """The cluster that this process has joined; a thread looks every two seconds who is alive."""

    def __init__(self) -> None:
        self.inbox: Inbox = SimpleQueue()
        self._names: dict[str, str] = {}
        self._lock = threading.Lock()
        _be_quiet()
        self._actor = ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0, concurrency_groups=_GROUPS)(
            AgentActor
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._list_nodes, name="nodes", daemon=True)
        self._thread.start()

    def nodes(self) -> tuple[Node, ...]:
        here = ray.get_runtime_context().get_node_id()
        alive = {str(node["NodeID"]): str(node["NodeName"]) for node in ray.nodes() if node["Alive"]}
        with self._lock:
            self._names = {id: name for id, name in self._names.items() if id in alive}
            for id, label in sorted(alive.items(), key=lambda pair: (pair[0] != here, pair[1])):
                self._names.setdefault(id, self._free_name(label, id))
            names = dict(self._names)
        return tuple(Node(id=id, name=name, label=alive[id], here=id == here) for id, name in names.items())

    def _free_name(self, label: str, id: str) -> str:
        """A machine that was restarted may come back before Ray knows that it was gone."""
        return label if label not in self._names.values() else f"{label}-{id[:6]}"

    def agent(self, node: Node, spec: AgentSpec) -> RayLine:
        where = NodeAffinitySchedulingStrategy(node_id=node.id, soft=False)
        return RayLine(self._actor.options(scheduling_strategy=where).remote(spec), self.inbox)

    def put(self, data: bytes) -> Any:
        return ray.put(data)

    def close(self) -> None:
        self._ending.set()
        self._thread.join(_ENDING_S)
        ray.shutdown()

    def _list_nodes(self) -> None:
        while not self._ending.wait(_LISTING_S):
            with suppress(RayError, RuntimeError):  # the head may be away for a moment
                self.inbox.put(LiveNodes(nodes=self.nodes()))


def _packed(orders: Sequence[Order]) -> Sequence[Order] | bytes:
    """Orders as bytes, which takes half as long as Ray would; files that Ray keeps are left to it."""
    return orders if any(isinstance(order, KeepFile) for order in orders) else pickle.dumps(orders)


def _received(order: Order) -> Order:
    """An order with the file that comes with it, pulled from Ray's store if it was put there."""
    if not isinstance(order, KeepFile) or not isinstance(order.data, ray.ObjectRef):
        return order
    try:
        return replace(order, data=ray.get(order.data))
    except RayError:
        return replace(order, data=None)


def _reason(error: BaseException) -> str:
    """Why an agent does not answer, in words for people."""
    if isinstance(error, ActorDiedError):
        return "its agent died"
    if isinstance(error, ActorUnavailableError):
        return "the connection to it is lost"
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__
