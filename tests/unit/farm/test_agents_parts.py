"""What an agent keeps: artifacts with receipts, files by digest."""

import errno
import gc
import hashlib
import os
import pickle
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.engines.surveys import SMALL
from tuneloom.engine.calls import Call, CallEnded, ReadFiles, Returned
from tuneloom.engine.ray.agent import Agent
from tuneloom.engine.ray.artifacts import (
    SMALL_BYTES,
    ArtifactCache,
    MissingArtifact,
    Receipt,
    receipts_in,
    unpacked,
)
from tuneloom.engine.ray.files import FileCache, NoRoom, mentioned, unpack
from tuneloom.engine.ray.messages import AgentReport, AgentSpec, ArtifactMissing, Start, Stop
from tuneloom.engine.ray.sending import SentFiles
from tuneloom.model import Artifact, ModelRecipe

LARGE = b"x" * SMALL_BYTES


def ended(payload: bytes) -> CallEnded:
    return CallEnded(id="it", result=Returned(value=Artifact(payload=payload)), started_s=0, ended_s=1)


def stowed(hold: ArtifactCache, payload: bytes) -> bytes:
    result = hold.stow(ended(payload)).result
    assert isinstance(result, Returned)
    artifact: Artifact = result.value
    return artifact.payload


def test_large_artifacts_stay_and_small_ones_travel() -> None:
    hold = ArtifactCache("a")
    receipt = stowed(hold, LARGE)
    assert isinstance(receipt, Receipt) and receipt.machine == "a" and receipt == b""
    assert hold.find(receipt.id) == LARGE
    assert stowed(hold, b"small") == b"small"


def test_a_receipt_survives_its_journey() -> None:
    receipt = pickle.loads(pickle.dumps(Receipt("1.1", "a")))
    assert (receipt.id, receipt.machine) == ("1.1", "a")


def test_the_oldest_artifact_goes_when_the_cache_is_full() -> None:
    hold = ArtifactCache("a", most_bytes=2 * SMALL_BYTES)
    first, second, third = (stowed(hold, LARGE) for _ in range(3))
    assert isinstance(first, Receipt) and isinstance(second, Receipt) and isinstance(third, Receipt)
    assert hold.find(first.id) is None and hold.find(second.id) and hold.find(third.id)


def test_receipts_are_found_and_replaced_wherever_calls_have_them() -> None:
    one, two = Receipt("1", "a"), Receipt("2", "b")
    call = Call(function="f", arguments=("text", Artifact(payload=one), [two, b"here"]))
    assert receipts_in(call) == [one, two] or [r.id for r in receipts_in(call)] == ["1", "2"]
    filled = unpacked(call, lambda receipt: receipt.id.encode())
    assert filled.arguments[1].payload == b"1" and filled.arguments[2] == [b"2", b"here"]


def test_files_are_read_under_their_own_names_by_their_digests(tmp_path: Path) -> None:
    cache, data = FileCache(tmp_path), b"weights"
    digest = hashlib.sha256(data).hexdigest()
    cache.keep(digest, data)
    assert cache.digests == {digest}
    reads = ReadFiles(folder="/far/away", digests={"net.onnx": digest})
    recipe = ModelRecipe(key="k", source="/far/away/net.onnx", shapes={}, target="cpu")
    call = Call(function="f", arguments=("cpu", recipe, "/far/away/net.onnx"), reads=reads)
    assert mentioned(call) is reads
    placed = cache.located(call, "1")
    assert Path(placed.arguments[1].source).read_bytes() == data
    assert Path(placed.arguments[2]).name == "net.onnx" and placed.arguments[0] == "cpu"


def test_the_samples_of_a_model_are_read_as_its_file_is(tmp_path: Path) -> None:
    cache, data = FileCache(tmp_path), b"inputs"
    digest = hashlib.sha256(data).hexdigest()
    cache.keep(digest, data)
    reads = ReadFiles(folder="/far", digests={"x.npz": digest})
    recipe = ModelRecipe(
        key="k", source="zoo:net", shapes={}, target="cpu", dtype="int8", samples="/far/x.npz"
    )
    call = Call(function="f", arguments=(recipe,), reads=reads)
    assert mentioned(call) is reads
    (placed,) = cache.located(call, "1").arguments
    assert placed.source == "zoo:net" and Path(placed.samples).read_bytes() == data


def test_calls_that_name_no_file_bring_none(tmp_path: Path) -> None:
    reads = ReadFiles(folder="/far", digests={"net.onnx": "0"})
    assert mentioned(Call(function="f", arguments=("mock", 3), reads=reads)) is None


def test_a_file_that_was_changed_on_its_way_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got lost or changed"):
        FileCache(tmp_path).keep("0" * 64, b"something else")


def test_what_a_call_writes_comes_back_and_leaves_nothing_behind(tmp_path: Path) -> None:
    cache = FileCache(tmp_path)
    call = cache.located(Call(function="f", arguments=("/out",), writes="/out"), "1")
    folder = Path(call.arguments[0])
    (folder / "part").mkdir()
    (folder / "part" / "model.so").write_bytes(b"code")
    written = cache.collected("1")
    assert written == {"part/model.so": b"code"} and not folder.exists()
    assert cache.collected("1") is None
    unpack(written, tmp_path / "here")
    assert (tmp_path / "here" / "part" / "model.so").read_bytes() == b"code"


def kept(folder: Path, data: bytes, age_s: float) -> str:
    """A file that was last used so long ago; its digest."""
    digest = hashlib.sha256(data).hexdigest()
    FileCache(folder).keep(digest, data)
    os.utime(folder / "files" / digest, (0, 1e9 - age_s))
    return digest


def reading(digest: str) -> Call:
    reads = ReadFiles(folder="/far", digests={"net.onnx": digest})
    return Call(function="f", arguments=("/far/net.onnx",), reads=reads)


def test_the_least_recently_used_file_goes_when_there_is_no_room(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, most_bytes=20)
    old, newer = kept(tmp_path, b"1" * 10, 30), kept(tmp_path, b"2" * 10, 20)
    cache.located(reading(old), "1")
    cache.collected("1")
    gone = cache.keep(hashlib.sha256(b"3" * 10).hexdigest(), b"3" * 10)
    assert gone == {newer} and old in cache.digests and len(cache.digests) == 2


def test_a_file_that_a_running_call_reads_never_goes_not_even_for_another_agent(tmp_path: Path) -> None:
    cache, other = FileCache(tmp_path, most_bytes=10), FileCache(tmp_path, most_bytes=10)
    needed = kept(tmp_path, b"1" * 10, 30)
    placed = cache.located(reading(needed), "1")
    assert other.keep(hashlib.sha256(b"2" * 10).hexdigest(), b"2" * 10) == frozenset()
    assert Path(placed.arguments[0]).read_bytes() == b"1" * 10
    cache.forget("1")
    assert needed in other.keep(hashlib.sha256(b"3" * 10).hexdigest(), b"3" * 10)


def test_a_call_whose_file_is_gone_does_not_begin(tmp_path: Path) -> None:
    cache = FileCache(tmp_path)
    with pytest.raises(FileNotFoundError):
        cache.located(reading("0" * 64), "1")


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def reading_all(*parts: bytes) -> Call:
    """A call that reads a model in several files, the first of which is its argument."""
    digests = {f"part{number}": digest_of(data) for number, data in enumerate(parts)}
    return Call(function="f", arguments=("/far/part0",), reads=ReadFiles(folder="/far", digests=digests))


def test_a_model_larger_than_all_that_stays_arrives_whole(tmp_path: Path) -> None:
    cache, parts = FileCache(tmp_path, most_bytes=10), [letter * 10 for letter in (b"1", b"2", b"3")]
    needed = frozenset(map(digest_of, parts))
    first = kept(tmp_path, parts[0], 30)  # of an earlier run, and the next to go
    gone = [cache.keep(digest_of(part), part, needed) for part in parts[1:]]
    assert gone == [frozenset(), frozenset()] and first in cache.digests
    cache.located(reading_all(*parts), "1")
    cache.forget("1")
    assert cache.keep(digest_of(b"4"), b"4") == needed, "they stay no longer than they are needed"


def test_files_on_their_way_are_safe_from_other_agents_until_their_call_has_begun(tmp_path: Path) -> None:
    cache, other = FileCache(tmp_path, most_bytes=10), FileCache(tmp_path, most_bytes=10)
    mine = digest_of(b"1" * 10)
    cache.keep(mine, b"1" * 10, frozenset({mine}))
    assert other.keep(digest_of(b"2" * 10), b"2" * 10) == frozenset()
    cache.expect_nothing()
    assert mine in other.keep(digest_of(b"3" * 10), b"3" * 10)


def test_a_call_whose_file_has_no_room_on_the_disk_is_told_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    cache, digest = FileCache(tmp_path), digest_of(b"weights")
    with monkeypatch.context() as disk:
        disk.setattr("tempfile.NamedTemporaryFile", full)
        assert cache.keep(digest, b"weights", frozenset({digest})) == {digest}
    with pytest.raises(NoRoom, match=r"a file of 0\.0 GiB in .*: No space left on device; make room"):
        cache.located(reading(digest), "1")
    with pytest.raises(FileNotFoundError):  # it may be sent again, and then be refused again
        cache.located(reading(digest), "2")


class Fetching:
    """Other machines: one that answers when a test lets it, and one that does not have what is asked for."""

    def __init__(self) -> None:
        self.asked, self.may_answer = threading.Event(), threading.Event()

    def __call__(self, receipt: Receipt) -> bytes:
        self.asked.set()
        self.may_answer.wait()
        if receipt.machine == "gone":
            raise MissingArtifact(receipt)
        return b"fetched"


@pytest.fixture
def fetching() -> Fetching:
    return Fetching()


@pytest.fixture
def agent(fetching: Fetching) -> Iterator[Agent]:
    engine = "support.engines.pretended:PretendedEngine"
    opened = Agent(AgentSpec(machine="a", survey=SMALL, argument="a", engine=engine), fetching)
    opened.hello()
    yield opened
    fetching.may_answer.set()
    opened.close()


def ends(agent: Agent, count: int) -> list[AgentReport]:
    told: list[AgentReport] = []
    while len(told) < count:
        told += agent.reports(60).reports
    return told


def test_an_agent_obeys_other_orders_while_it_fetches_what_a_call_needs(
    agent: Agent, fetching: Fetching
) -> None:
    slow = Call(function="builtins:len", arguments=(Receipt("1", "b"),))
    agent.order(0, [Start(id="slow", call=slow)])
    fetching.asked.wait()
    agent.order(1, [Start(id="quick", call=Call(function="builtins:len", arguments=("four",)))])
    (quick,) = ends(agent, 1)
    assert isinstance(quick, CallEnded) and (quick.id, quick.result) == ("quick", Returned(value=4))
    fetching.may_answer.set()
    (late,) = ends(agent, 1)
    assert isinstance(late, CallEnded) and (late.id, late.result) == ("slow", Returned(value=len(b"fetched")))


def test_a_call_that_was_stopped_while_something_was_fetched_never_begins(
    agent: Agent, fetching: Fetching
) -> None:
    stopped = Call(function="builtins:len", arguments=(Receipt("1", "b"),))
    missing = Call(function="builtins:len", arguments=(Receipt("2", "gone"),))
    agent.order(0, [Start(id="stopped", call=stopped), Stop(id="stopped"), Start(id="missing", call=missing)])
    fetching.may_answer.set()
    (told,) = ends(agent, 1)
    assert isinstance(told, ArtifactMissing) and told.id == "missing"


class InStore:
    """A file in the store of a cluster."""


def test_files_that_were_sent_stay_in_memory_up_to_a_limit(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(b"x" * 10)
    read: list[bytes] = []
    sent = SentFiles(lambda data: (read.append(data), InStore())[1], most_bytes=20)
    stored = [weakref.ref(sent.get(name, tmp_path / name)) for name in "aabc"]
    gc.collect()
    assert len(read) == 3, "a file that is here is not read again"
    assert [reference() is None for reference in stored] == [True, True, False, False]
