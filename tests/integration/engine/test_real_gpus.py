"""Every GPU of this machine is held by a process that sees no other; skipped without one."""

from contextlib import closing

import pytest

from tuneloom.app.conducting.calling import end_of
from tuneloom.app.conducting.placing import Placing
from tuneloom.app.devices.describing import MachineOrder, describe
from tuneloom.engine.calls import Call, Returned
from tuneloom.engine.local import LocalEngine
from tuneloom.gpus import VISIBLE, visible_gpus

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not visible_gpus(), reason="no GPU"),
]


def test_a_worker_sees_the_gpu_that_it_holds_and_no_other() -> None:
    placing = Placing()
    offers = [offer for offer in describe(MachineOrder()).offers if VISIBLE in offer.environment]
    assert len(offers) == len(visible_gpus())
    with closing(LocalEngine()) as engine:
        for offer in offers:
            placing.add(offer)
            call = Call(function="support.gpus:seen_gpus")
            engine.start("it", placing.placed(call, "job", offer.resource.name))
            assert end_of(engine, "it", None) == Returned(value=[offer.environment[VISIBLE]])
