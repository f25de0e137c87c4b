"""A job goes on in the worker that read its model when it was checked."""

from dataclasses import replace
from typing import cast

from tuneloom.app.kinds.model.job import ModelJob
from tuneloom.app.kinds.model.kind import KIND
from tuneloom.app.runs.executing.bookkeeping import Book
from tuneloom.app.runs.executing.held_run import HeldRun
from tuneloom.model import Budget, JobSpec
from tuneloom.store import Lease, Store

NET = JobSpec(name="net", model="/models/net.onnx", budget=Budget(trials=1), reuse="off")


def held(given: set[str]) -> HeldRun:
    nothing = None
    return HeldRun(
        store=cast(Store, nothing),
        lease=cast(Lease, nothing),
        book=cast(Book, nothing),
        lanes=1,
        workers=1,
        cores_of=lambda _key: 1,
        given_workers=given,
    )


def test_the_first_job_of_a_model_goes_on_where_it_was_checked() -> None:
    checked = KIND.refusal(NET)
    assert checked is not None and checked.worker
    job = ModelJob(held(set())._context("r.1", NET))
    assert job.open_call().worker == job.model_worker == checked.worker


def test_another_job_of_the_same_model_gets_a_worker_of_its_own_in_any_run() -> None:
    given: set[str] = set()
    first = ModelJob(held(given)._context("r.1", NET))
    other = ModelJob(held(given)._context("s.1", replace(NET, name="again")))
    assert first.model_worker != other.model_worker == "s.1:model"


def test_jobs_that_nobody_checked_in_a_worker_have_their_own() -> None:
    spec = replace(NET, tuner="mock", model="mock:size=8")
    assert held(set())._context("r.1", spec).model_worker == ""
