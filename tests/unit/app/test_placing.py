"""Calls are put where their resource is, by the way that its offer says."""

from tuneloom.app.conducting.placing import REACHING_S, Placing
from tuneloom.engine.calls import Call, Place
from tuneloom.engine.machine import Offer
from tuneloom.model import Device, Host

CALL = Call(function="a:b", arguments=(1, 2), timeout_s=10.0)


def placed(offer: Offer, call: Call = CALL) -> Call:
    placing = Placing()
    placing.add(offer)
    return placing.placed(call, "job", offer.resource.name)


def test_a_call_takes_what_its_device_needs_along() -> None:
    device = Device(name="gpu1", key="cuda", machine="m")
    call = placed(Offer(resource=device, cores=frozenset({3}), environment={"A": "1"}))
    assert (call.place, call.cores) == (Place(resource="gpu1", machine="m"), {3})
    assert (call.environment, call.function, call.arguments) == ({"A": "1"}, "a:b", (1, 2))


def test_a_call_that_is_spread_uses_the_cores_of_its_machine_beside_others() -> None:
    placing = Placing()
    for machine, host, device in (("m", {0, 1}, {2}), ("other", {8}, {9})):
        placing.add(
            Offer(resource=Host(name=f"host {machine}", slots=1, machine=machine), cores=frozenset(host))
        )
        own = Device(name=f"cpu {machine}", key="cpu", machine=machine)
        placing.add(Offer(resource=own, cores=frozenset(device), locks=("core-2",)))
    spread = placing.placed(Call(function="a:b", spread=True), "job", "cpu m")
    assert (spread.cores, spread.alone, spread.locks) == ({0, 1, 2}, False, ("core-2",))
    plain = placing.placed(CALL, "job", "cpu m")
    assert (plain.cores, plain.alone) == ({2}, True)


def test_a_device_elsewhere_is_reached_through_its_function_which_gets_more_time() -> None:
    board = Offer(resource=Device(name="board", key="arm"), through="c:on_it")
    call = placed(board)
    assert (call.function, call.arguments) == ("c:on_it", ("a:b", 10.0, 1, 2))
    assert call.timeout_s == 10.0 + REACHING_S
    patient = placed(board, Call(function="a:b"))
    assert (patient.arguments, patient.timeout_s) == (("a:b", None), None)


def gpu(number: int) -> Offer:
    return Offer(
        resource=Device(name=f"cuda{number}", key="cuda", machine="m"),
        resident=True,
        environment={"CUDA_VISIBLE_DEVICES": f"GPU-{number}"},
        locks=(f"gpu-GPU-{number}",),
    )


def test_a_process_that_keeps_a_model_stays_on_its_first_gpu_and_holds_that_one() -> None:
    placing = Placing()
    placing.add(gpu(0))
    placing.add(gpu(1))
    keeping = Call(function="a:b", worker="job:model")
    first, later = (placing.placed(keeping, "job", name) for name in ("cuda1", "cuda0"))
    assert first.environment == later.environment == {"CUDA_VISIBLE_DEVICES": "GPU-1"}
    assert later.locks == ("gpu-GPU-1",) and later.place == Place(resource="cuda0", machine="m")
    assert placing.placed(CALL, "job", "cuda0").environment == {"CUDA_VISIBLE_DEVICES": "GPU-0"}
    placing.remove("cuda1")
    assert placing.placed(keeping, "job", "cuda0").environment == {"CUDA_VISIBLE_DEVICES": "GPU-0"}
