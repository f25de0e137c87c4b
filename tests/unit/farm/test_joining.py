"""Before a farm is used: its nodes exist, its versions agree, its jobs have devices and targets."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tuneloom.app.devices.base import DeviceEntry
from tuneloom.app.farm.aiming import aimed_at, for_devices, require_usable_device, with_listed_target
from tuneloom.app.farm.joining import JoinedFarm, order_for, require_nodes, require_same_versions
from tuneloom.app.farm.reading import FarmFile, HostEntry
from tuneloom.app.farm.surveying import versions
from tuneloom.app.grids.grid import Combination
from tuneloom.engine.calls import CallResult, Lost, Returned
from tuneloom.engine.local import LocalEngine
from tuneloom.engine.machine import Offer
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


class PretendedMachines:
    """Machines whose devices come and go as a test says."""

    def __init__(self, facts: Mapping[str, Mapping[str, Any]], *offers: Offer) -> None:
        self.facts = facts
        self.offers = offers
        self.away: dict[str, str] = {}
        self.absent: dict[str, str] = {}


def three_gpus() -> JoinedFarm:
    gpus = [Offer(resource=Device(name=f"m{n}/gpu0", key="gpu", machine=f"m{n}")) for n in range(3)]
    machines = PretendedMachines({"m0": {"cpu": "a"}, "m1": {"cpu": "a"}}, *gpus)
    return JoinedFarm(file=FARM, engine=LocalEngine(), machines=machines)


def answered(farm: JoinedFarm, *answers: CallResult | Lost) -> JobSpec:
    """The job as it is aimed at devices that answer so."""
    aiming = aimed_at(job(device_key="gpu"), farm)
    try:
        assert len(next(aiming)) == len(answers), "all are asked side by side"
        aiming.send(answers)
    except StopIteration as done:
        spec: JobSpec = done.value
        return spec
    raise AssertionError("more is asked")


def test_a_device_that_is_lost_while_it_is_asked_does_not_fail_a_job_that_others_can_do() -> None:
    farm, target = three_gpus(), Returned(value='{"kind": "cuda"}')
    with closing(farm.engine):
        assert answered(farm, target, Lost(reason="gone"), target).target == '{"kind": "cuda"}'
        with pytest.raises(FarmError, match=r"no device with key 'gpu' is left: m2/gpu0: gone"):
            answered(farm, *(Lost(reason="gone") for _ in range(3)))


def test_a_job_whose_devices_are_in_trouble_hears_why() -> None:
    facts = {"a": {"troubles": {"a72@board:9090": "no answer from board:9090 within 5 s"}}}
    xeon = Offer(resource=Device(name="b/xeon0", key="xeon"))
    machines = PretendedMachines(facts, xeon)
    farm = JoinedFarm(file=FARM, engine=LocalEngine(), machines=machines)
    try:
        require_usable_device(job(device_key="xeon"), farm)
        require_usable_device(job(device_key="a72", waits_for_devices=True), farm)
        with pytest.raises(FarmError, match=r"net: no device with key 'a72' can be used: .* within 5 s"):
            require_usable_device(job(device_key="a72"), farm)
        machines.offers = (xeon, Offer(resource=Device(name="a72@board:9090", key="a72")))
        require_usable_device(job(device_key="a72"), farm)  # it has come
        machines.offers, machines.away = (xeon,), {"a72@board:9090": "it was unplugged"}
        with pytest.raises(FarmError, match="it was unplugged"):
            require_usable_device(job(device_key="a72"), farm)
    finally:
        farm.engine.close()


def test_a_grid_may_name_a_farm_beside_it() -> None:
    words = Combination({"models": "zoo:mlp", "farm": "farm.toml"}).arguments(Path("/grids"))
    assert words == ["zoo:mlp", "--farm", "/grids/farm.toml"]
