"""Before a farm is used: its nodes exist, its versions agree, its jobs have devices and targets."""

from pathlib import Path
from typing import Any

import pytest

from tuneloom.app.devices.entries import DeviceEntry
from tuneloom.app.farm.aiming import for_devices, require_usable_device, with_listed_target
from tuneloom.app.farm.entries import FarmFile, HostEntry
from tuneloom.app.farm.joining import JoinedFarm, order_for, require_nodes, require_same_versions
from tuneloom.app.farm.surveying import versions
from tuneloom.app.grids.grid import Combination
from tuneloom.engine.local import LocalEngine
from tuneloom.engine.machine import Fleet, Offer
from tuneloom.errors import FarmError
from tuneloom.model import Budget, Device, JobSpec

ARM = '{"kind": "llvm", "mtriple": "aarch64-linux-gnu"}'
BOARD = DeviceEntry(key="a72", kind="rpc", address="board:9090", target=ARM, line=7)
CORES = DeviceEntry(key="xeon", kind="cpu", node="b", cores=2, line=12)
FARM = FarmFile(
    path=Path("farm.toml"), hosts=(HostEntry(node="b", slots=12, line=3),), devices=(BOARD, CORES)
)


def job(**values: Any) -> JobSpec:
    return JobSpec(**({"name": "net", "model": "net.onnx", "budget": Budget(trials=1)} | values))


def test_a_node_that_the_cluster_does_not_have_is_named_with_its_line() -> None:
    require_nodes(FARM, ["a", "b"])
    with pytest.raises(FarmError, match=r"farm\.toml, line 3: Ray has no node 'b'; known: 'a', 'c'"):
        require_nodes(FARM, ["c", "a"])


def test_different_versions_are_told_with_both() -> None:
    own = versions()
    require_same_versions({"b": {"versions": own}})
    with pytest.raises(FarmError, match=rf"b has TVM 0\.1, this machine has {own['apache-tvm']}"):
        require_same_versions({"b": {"versions": own | {"apache-tvm": "0.1"}}})


def test_machines_are_asked_for_what_is_listed_of_them() -> None:
    order = order_for(FARM, "b", "b-1", here=False)
    assert (order.name, order.slots, order.devices) == ("b-1", 12, (CORES,))
    assert order_for(FARM, "a", "a", here=False).devices == ()
    assert order_for(FARM, "a", "a", here=True).devices == (BOARD,), (
        "boards are reached from the run's machine"
    )
    assert order_for(FarmFile(path=Path("f")), "a", "a", here=False).devices is None


def test_several_devices_are_a_job_each_with_names_and_folders_of_their_own() -> None:
    jobs = for_devices([job(out="/fast")], ["h200", "a72"])
    assert [(j.name, j.device_key, j.out) for j in jobs] == [
        ("net-h200", "h200", "/fast/h200"),
        ("net-a72", "a72", "/fast/a72"),
    ]
    assert for_devices([job(device_key="mine")], ["mine"]) == [job(device_key="mine")]


def test_a_job_gets_the_target_of_its_device_unless_it_has_its_own() -> None:
    assert with_listed_target(job(device_key="a72"), FARM).target == ARM
    assert with_listed_target(job(device_key="xeon"), FARM).target == "cpu"
    assert with_listed_target(job(device_key="a72", target="cuda"), FARM).target == "cuda"


def test_a_job_whose_devices_are_in_trouble_hears_why() -> None:
    facts = {"a": {"troubles": {"a72@board:9090": "no answer from board:9090 within 5 s"}}}
    xeon = Offer(resource=Device(name="b/xeon0", key="xeon"))
    farm = JoinedFarm(file=FARM, engine=LocalEngine(), fleet=Fleet(offers=(xeon,)), facts=facts, absent={})
    try:
        require_usable_device(job(device_key="xeon"), farm)
        require_usable_device(job(device_key="a72", waits_for_devices=True), farm)
        with pytest.raises(FarmError, match=r"net: no device with key 'a72' can be used: .* within 5 s"):
            require_usable_device(job(device_key="a72"), farm)
    finally:
        farm.engine.close()


def test_a_grid_may_name_a_farm_beside_it() -> None:
    words = Combination({"models": "zoo:mlp", "farm": "farm.toml"}).arguments(Path("/grids"))
    assert words == ["zoo:mlp", "--farm", "/grids/farm.toml"]
