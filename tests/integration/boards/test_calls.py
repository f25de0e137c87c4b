"""Kernels on a board: this very machine, reached over TVM's RPC protocol."""

import json
import platform
import signal
from collections.abc import Iterator

import pytest

from support.boards.local import BoardProcess, calling, end_of_profile, profile_on, start_profile
from support.ports import reserved_port
from tuneloom.backends.resolving import resolve_target
from tuneloom.engine.calls import Lost, Returned, TimedOut
from tuneloom.engine.local import LocalEngine
from tuneloom.model import Board, Failure, Measurement, MeasuringRules
from tuneloom.tuners.tvm.boards.handshake import hello
from tuneloom.tuners.tvm.measuring.canary import canary_payload

TARGET = json.dumps({"kind": "llvm", "mtriple": f"{platform.machine()}-linux-gnu"})
RULES = MeasuringRules(min_repeat_ms=1)
PROFILE = "tuneloom.tuners.tvm.measuring.profiling:profile_kernel"
WARM_UP = "tuneloom.tuners.tvm.warmth:warm_up"


@pytest.fixture(scope="module")
def board() -> Iterator[BoardProcess]:
    with BoardProcess.real(TARGET) as one:
        yield one


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    engine = LocalEngine(WARM_UP)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def canary() -> bytes:
    return canary_payload(resolve_target(TARGET))


def await_session(board: Board) -> None:
    while not hello(board).busy:
        pass


def test_a_kernel_is_timed_on_the_board(engine: LocalEngine, board: BoardProcess, canary: bytes) -> None:
    result = profile_on(engine, board.board, canary)
    assert isinstance(result, Returned) and isinstance(result.value, Measurement)
    assert 0 < result.value.best_s < 1


def test_a_crashing_and_a_hanging_candidate_cost_one_trial_each(
    engine: LocalEngine, board: BoardProcess, canary: bytes
) -> None:
    crashed = profile_on(engine, board.board, calling(TARGET, ("abort",)))
    assert isinstance(crashed, Returned) and isinstance(crashed.value, Failure)
    assert isinstance(profile_on(engine, board.board, calling(TARGET, ("pause",)), limit_s=0.5), TimedOut)
    again = profile_on(engine, board.board, canary)
    assert isinstance(again, Returned) and isinstance(again.value, Measurement)


def test_a_board_that_dies_while_a_candidate_runs_is_lost_and_used_again_when_it_is_back(
    engine: LocalEngine, canary: bytes
) -> None:
    with reserved_port() as port:
        with BoardProcess.real(TARGET, port=port) as dying:
            start_profile(engine, dying.board, calling(TARGET, ("pause",)))
            await_session(dying.board)
            dying.kill()
            result = end_of_profile(engine)
        assert isinstance(result, Lost) and dying.board.address in result.reason
        with BoardProcess.real(TARGET, port=port):
            assert isinstance(profile_on(engine, dying.board, canary), Returned)


def test_a_board_that_stops_answering_is_lost_and_its_candidate_is_not_blamed(engine: LocalEngine) -> None:
    with BoardProcess.real(TARGET) as stuck:
        assert stuck.process is not None
        stopping = ("kill", stuck.process.pid, int(signal.SIGSTOP))
        payload = calling(TARGET, stopping, ("pause",))
        result = profile_on(engine, stuck.board, payload, limit_s=0.5, patience_s=300.0)
        stuck.process.send_signal(signal.SIGCONT)
    assert isinstance(result, Lost) and "no answer from 127.0.0.1" in result.reason
