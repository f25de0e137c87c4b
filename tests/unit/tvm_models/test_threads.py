"""TVM's runtime gets as many threads as its process has cores."""

import os

import pytest

from tuneloom.compiler.threads import use_cores, use_own_cores


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TVM_NUM_THREADS", "TVM_BIND_THREADS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {2, 3, 5})


def test_a_thread_for_each_core_whatever_other_libraries_were_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    use_own_cores()
    assert os.environ["TVM_NUM_THREADS"] == "3"
    assert os.environ["TVM_BIND_THREADS"] == "0"


def test_what_the_user_said_about_threads_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", "7")
    use_own_cores()
    assert os.environ["TVM_NUM_THREADS"] == "7"


def test_a_bundle_for_several_cores_sets_their_number() -> None:
    use_cores(2)
    assert os.environ["TVM_NUM_THREADS"] == "2"


def test_a_bundle_for_one_core_needs_no_threads() -> None:
    use_cores(1)
    assert "TVM_NUM_THREADS" not in os.environ
