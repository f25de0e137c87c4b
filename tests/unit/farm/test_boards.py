"""Jobs for boards: what a board can't do is refused, or left out, before anything starts."""

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from tuneloom.app.devices.base import DeviceEntry
from tuneloom.app.farm.aiming import for_board, require_own_machine
from tuneloom.app.farm.reading import FarmFile
from tuneloom.errors import TargetError
from tuneloom.model import Budget, JobSpec

FARM = FarmFile(
    path=Path("farm.toml"),
    devices=(
        DeviceEntry(key="arm", kind="rpc", address="b:1", target="cpu"),
        DeviceEntry(key="xeon", kind="cpu", node="n"),
    ),
)


def job(tuner: str, key: str) -> JobSpec:
    return JobSpec(name="it", model="net.onnx", budget=Budget(trials=1), tuner=tuner, device_key=key)


def test_a_model_for_a_board_has_no_parts_for_another_runtime() -> None:
    assert for_board(job("tvm", "arm"), FARM).only_tvm
    assert not for_board(job("tvm", "xeon"), FARM).only_tvm


def test_a_job_that_boards_know_nothing_of_is_refused() -> None:
    with pytest.raises(TargetError, match="it: mock jobs can't be measured on boards; choose another"):
        for_board(job("mock", "arm"), FARM)
    assert for_board(job("mock", "xeon"), FARM) == job("mock", "xeon")


def test_a_target_of_another_architecture_is_refused_where_there_is_no_board() -> None:
    foreign = replace(job("tvm", "cpu"), target='{"kind": "llvm", "mtriple": "m68k-linux-gnu"}')
    with pytest.raises(TargetError, match=r"it: its target is for m68k, this machine is .*--farm FILE"):
        require_own_machine(foreign)
    own = f'{{"kind": "llvm", "mtriple": "{platform.machine()}-linux-gnu"}}'
    for target in ("cpu", "cuda", own, "{nonsense", "[]"):
        require_own_machine(replace(foreign, target=target))
