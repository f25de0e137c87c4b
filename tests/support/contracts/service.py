"""What every store must do for a service: tenants, tokens, models, submissions and the audit log."""

from dataclasses import replace

import pytest

from support.contracts.opened_store import OpenAgain, OpenedStore
from support.contracts.store import CONV, HERE, failed, measured
from tuneloom.errors import ConflictError, InputError, ModelError, QuotaError
from tuneloom.store import (
    AuditEntry,
    JobStatus,
    ModelState,
    Page,
    Role,
    RunStatus,
    SpanRecord,
    Store,
    Submission,
    TenantLimits,
    owner_of,
)

DIGEST = "ab" * 32
SMALL = TenantLimits(jobs_at_once=6, trials_a_day=100, bytes_stored=1000)


def submission(tenant: str = "weavers", **changes: object) -> Submission:
    """A small job of a tenant."""
    plain = Submission(
        tenant=tenant, token="t1", name="net", model=DIGEST, spec={"trials": 8}, trials=8, request="r1"
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


class TenantContract(OpenedStore):
    """Tenants and tokens."""

    def test_a_tenant_comes_back_as_it_was_made(self, store: Store, open_again: OpenAgain) -> None:
        limits = TenantLimits(weight=2.5, jobs_at_once=3, shares_records=True)
        made = store.add_tenant("weavers", limits)
        other = open_again()
        assert other.tenant("weavers") == made
        assert made.limits == limits
        other.close()

    def test_a_tenant_s_name_is_given_once(self, store: Store) -> None:
        store.add_tenant("weavers", TenantLimits())
        with pytest.raises(ConflictError, match="weavers"):
            store.add_tenant("weavers", TenantLimits())

    @pytest.mark.parametrize("name", ["", "Weavers", "-a", "a/b", "../a", "a" * 41, "a\n"])
    def test_a_name_that_is_no_plain_word_is_refused(self, store: Store, name: str) -> None:
        with pytest.raises(InputError, match="small letters"):
            store.add_tenant(name, TenantLimits())

    def test_a_tenant_s_limits_can_be_changed(self, store: Store) -> None:
        store.add_tenant("weavers", TenantLimits())
        changed = store.change_tenant("weavers", TenantLimits(weight=3))
        assert changed is not None and changed.limits.weight == 3
        assert store.change_tenant("nobody", TenantLimits()) is None

    def test_a_token_is_found_with_its_digest_until_it_is_revoked(self, store: Store) -> None:
        store.add_tenant("weavers", TenantLimits())
        token = store.add_token("weavers", "ci", Role.SUBMITTER, DIGEST, expires=9e9)
        assert store.token_with_digest(token.id) == (token, DIGEST)
        assert token.is_valid(1.0) and not token.is_valid(9.1e9)
        assert store.revoke_token(token.id)
        assert not store.revoke_token(token.id)
        found = store.token_with_digest(token.id)
        assert found is not None and not found[0].is_valid(1.0)

    def test_tokens_are_listed_by_tenant(self, store: Store) -> None:
        for tenant in ("weavers", "spinners"):
            store.add_tenant(tenant, TenantLimits())
            store.add_token(tenant, "one", Role.READER, DIGEST)
        assert [token.tenant for token in store.tokens("spinners")] == ["spinners"]
        assert len(store.tokens()) == 2
        with pytest.raises(InputError, match="nobody"):
            store.add_token("nobody", "one", Role.READER, DIGEST)


class SessionContract(OpenedStore):
    """Who logged in to the page."""

    @pytest.fixture
    def token(self, store: Store) -> str:
        store.add_tenant("weavers", TenantLimits())
        return store.add_token("weavers", "ci", Role.SUBMITTER, DIGEST).id

    def test_a_session_opens_what_its_token_opens_until_it_expires(self, store: Store, token: str) -> None:
        store.add_session(token, "one", 9e9, most=5)
        found = store.session("one")
        assert found is not None and (found.token.id, found.token.role) == (token, Role.SUBMITTER)
        assert found.is_valid(1.0) and not found.is_valid(9.1e9)
        assert store.session("two") is None

    def test_a_session_ends_with_its_token(self, store: Store, token: str) -> None:
        store.add_session(token, "one", 9e9, most=5)
        store.revoke_token(token)
        found = store.session("one")
        assert found is not None and not found.is_valid(1.0)

    def test_who_logged_out_is_gone(self, store: Store, token: str) -> None:
        store.add_session(token, "one", 9e9, most=5)
        assert store.remove_session("one")
        assert store.session("one") is None
        assert not store.remove_session("one")

    def test_expired_and_surplus_sessions_make_room_for_a_new_one(self, store: Store, token: str) -> None:
        store.add_session(token, "old", 1.0, most=2)
        for name in ("one", "two", "three"):
            store.add_session(token, name, 9e9, most=2)
        there = [name for name in ("old", "one", "two", "three") if store.session(name) is not None]
        assert len(there) == 2 and "three" in there and "old" not in there


class ModelContract(OpenedStore):
    """Uploaded models."""

    @pytest.fixture(autouse=True)
    def two_tenants(self, store: Store) -> None:
        """Each may have little."""
        for tenant in ("weavers", "spinners"):
            store.add_tenant(tenant, SMALL)

    def test_a_model_belongs_to_its_tenant_alone(self, store: Store) -> None:
        model = store.add_model("weavers", DIGEST, "net.onnx", 400)
        assert store.model("weavers", DIGEST) == model
        assert store.model("spinners", DIGEST) is None
        assert store.models("spinners") == []
        assert not store.remove_model("spinners", DIGEST)

    def test_the_same_model_again_is_the_one_that_is_there(self, store: Store) -> None:
        first = store.add_model("weavers", DIGEST, "net.onnx", 400)
        assert store.add_model("weavers", DIGEST, "other.onnx", 400) == first
        assert store.usage("weavers").size_bytes == 400

    def test_a_model_beyond_the_quota_is_refused(self, store: Store) -> None:
        store.add_model("weavers", DIGEST, "net.onnx", 400)
        with pytest.raises(QuotaError, match="1000"):
            store.add_model("weavers", "cd" * 32, "big.onnx", 601)

    def test_what_was_found_in_a_model_is_kept(self, store: Store) -> None:
        store.add_model("weavers", DIGEST, "net.onnx", 400)
        assert [model.digest for model in store.unchecked_models(5)] == [DIGEST]
        store.describe_model("weavers", DIGEST, ModelState.READY, {"inputs": {"x": [1, 3]}})
        found = store.model("weavers", DIGEST)
        assert found is not None and found.state is ModelState.READY
        assert found.summary == {"inputs": {"x": [1, 3]}}
        assert store.unchecked_models(5) == []

    def test_a_model_that_a_job_needs_stays(self, store: Store) -> None:
        store.add_model("weavers", DIGEST, "net.onnx", 400)
        job, _ = store.submit_job(submission(), {})
        with pytest.raises(ConflictError, match=job.id):
            store.remove_model("weavers", DIGEST)
        store.set_job(job.job, JobStatus.CANCELLED)
        assert store.remove_model("weavers", DIGEST)
        assert store.model("weavers", DIGEST) is None

    def test_models_come_in_pages(self, store: Store) -> None:
        for number in range(5):
            store.add_model("weavers", f"{number:064d}", f"net{number}.onnx", 1)
        first = store.models("weavers", limit=2)
        assert [model.name for model in first] == ["net4.onnx", "net3.onnx"]
        rest = store.models("weavers", before=first[-1].number, limit=9)
        assert [model.name for model in rest] == ["net2.onnx", "net1.onnx", "net0.onnx"]


class SubmissionContract(OpenedStore):
    """Jobs of tenants."""

    @pytest.fixture(autouse=True)
    def two_tenants(self, store: Store) -> None:
        """Each may have little."""
        for tenant in ("weavers", "spinners"):
            store.add_tenant(tenant, SMALL)

    def test_a_submitted_job_waits_for_an_executor(self, store: Store) -> None:
        job, new = store.submit_job(submission(), {"policy": "load-aware"})
        assert new and job.status is JobStatus.WAITING
        assert store.run(job.id).status is RunStatus.WAITING
        assert store.job(job.job).spec == {"trials": 8}
        assert store.submitted_job(job.id, "weavers") == job

    def test_a_job_whose_model_was_removed_since_it_was_checked_is_refused(self, store: Store) -> None:
        digest = store.put_blob([b"net"], "model:weavers")
        store.add_model("weavers", digest, "net.onnx", 3)
        checked = submission(spec={"files": {"net.onnx": digest}})
        assert store.remove_model("weavers", digest)
        with pytest.raises(ModelError, match="upload it first"):
            store.submit_job(checked, {})
        assert store.submitted_jobs("weavers") == []

    def test_a_new_job_is_noted_and_owns_its_files_at_once(self, store: Store) -> None:
        digest = store.put_blob([b"net"], "model:weavers")
        store.add_model("weavers", digest, "net.onnx", 3)
        entry = AuditEntry(tenant="weavers", token="t", action="submit job", subject="", request_id="r")
        asked = submission(key="k", spec={"files": {"net.onnx": digest}})
        job, _ = store.submit_job(asked, {}, entry)
        store.submit_job(asked, {}, entry)
        assert [(each.action, each.subject) for each in store.audit()] == [("submit job", job.id)]
        store.drop_blobs("model:weavers")
        assert store.has_blob(digest)
        assert store.drop_blobs(owner_of(job.id)) == 1

    def test_a_job_of_another_tenant_is_not_there(self, store: Store) -> None:
        job, _ = store.submit_job(submission(), {})
        assert store.submitted_job(job.id, "spinners") is None
        assert store.submitted_jobs("spinners") == []
        assert store.submitted_job(job.id) == job

    def test_the_same_key_gives_the_same_job(self, store: Store) -> None:
        first, _ = store.submit_job(submission(key="k"), {})
        again, new = store.submit_job(submission(key="k"), {})
        assert (again, new) == (first, False)
        other, new = store.submit_job(submission("spinners", key="k"), {})
        assert new and other.id != first.id

    def test_a_key_of_another_request_is_refused(self, store: Store) -> None:
        store.submit_job(submission(key="k"), {})
        with pytest.raises(ConflictError, match="new key"):
            store.submit_job(submission(key="k", request="r2"), {})

    def test_more_jobs_than_the_quota_are_refused_until_one_ends(self, store: Store) -> None:
        jobs = [store.submit_job(submission(), {})[0] for _ in range(6)]
        with pytest.raises(QuotaError, match="6 jobs") as caught:
            store.submit_job(submission(), {})
        assert caught.value.field == "jobs_at_once"
        store.set_job(jobs[0].job, JobStatus.FINISHED)
        store.submit_job(submission(), {})

    def test_more_trials_a_day_than_the_quota_are_refused(self, store: Store) -> None:
        store.submit_job(submission(trials=70), {})
        with pytest.raises(QuotaError, match="30 more trials"):
            store.submit_job(submission(trials=31), {})
        assert store.usage("weavers").trials == 70
        assert len(store.runs()) == 1

    def test_jobs_are_filtered_and_come_in_pages(self, store: Store) -> None:
        jobs = [store.submit_job(submission(name=f"net{n}"), {})[0] for n in range(4)]
        store.set_job(jobs[1].job, JobStatus.FAILED)
        assert [job.name for job in store.submitted_jobs("weavers", limit=2)] == ["net3", "net2"]
        page = store.submitted_jobs("weavers", before=jobs[2].number)
        assert [job.name for job in page] == ["net1", "net0"]
        failed = store.submitted_jobs("weavers", statuses=[JobStatus.FAILED])
        assert [job.name for job in failed] == ["net1"]
        assert [job.name for job in store.submitted_jobs(name="t2")] == ["net2"]
        assert store.submitted_jobs(name="%") == []
        assert store.job_counts() == {"waiting": 3, "failed": 1}

    def test_a_bundle_counts_as_stored_by_its_tenant(self, store: Store) -> None:
        job, _ = store.submit_job(submission(), {})
        assert store.bundle(job.id) is None
        store.keep_bundle(job.id, DIGEST, 123)
        found = store.bundle(job.id)
        assert found is not None and (found.digest, found.size_bytes) == (DIGEST, 123)
        assert store.usage("weavers").size_bytes == 123


class WatchContract(OpenedStore):
    """What people watch."""

    @pytest.fixture
    def job(self, store: Store) -> str:
        store.add_tenant("weavers", TenantLimits())
        run = store.submit_job(submission(spec={"device_key": "h200"}), {})[0].id
        store.add_tasks(f"{run}.1", [CONV], family=HERE.family, target=HERE.target)
        return run

    def test_spans_come_once_and_in_the_order_of_writing(self, store: Store, job: str) -> None:
        span = SpanRecord(job=f"{job}.1", task="k", kind="build", resource="host", start_s=1.0, end_s=2.0)
        store.write_pages([Page(run=job, spans=(span, replace(span, start_s=0.5)))])
        first = store.spans_after(job, 0, 1)
        assert [each["start_s"] for each in first] == [1.0]
        assert [each["start_s"] for each in store.spans_after(job, first[0]["id"], 9)] == [0.5]

    def test_failed_trials_have_their_messages(self, store: Store, job: str) -> None:
        store.add_trial(f"{job}.1", CONV.key, measured("good", 0.5), HERE)
        store.add_trial(f"{job}.1", CONV.key, failed("bad", message="no such register"), HERE)
        (told,) = store.failed_trials(f"{job}.1", 9)
        assert (told["outcome"], told["message"]) == ("build_error", "no such register")

    def test_devices_are_noted_by_jobs_that_started(self, store: Store, job: str) -> None:
        store.set_note(job, "canary", [[1.0, 1.02]])
        assert store.device_notes(9) == []
        store.set_job(f"{job}.1", JobStatus.RUNNING)
        (notes,) = store.device_notes(9)
        assert (notes.device_key, notes.canary, notes.resources) == ("h200", ((1.0, 1.02),), ())
        assert notes.began > 0

    def test_jobs_are_counted_by_tenant(self, store: Store, job: str) -> None:
        assert store.job_counts() == store.job_counts("weavers") == {"waiting": 1}
        assert store.job_counts("spinners") == {}

    def test_the_audit_log_is_searched_by_subject(self, store: Store) -> None:
        entry = AuditEntry(tenant="weavers", token="t", action="pause", subject="one", request_id="r")
        store.add_audit(entry)
        store.add_audit(replace(entry, subject="two"))
        assert [each.subject for each in store.audit(subject="two")] == ["two"]


class AuditContract(OpenedStore):
    """The audit log."""

    def test_entries_come_newest_first_and_by_tenant(self, store: Store) -> None:
        for tenant, action in (("weavers", "submit"), ("spinners", "cancel"), ("weavers", "revoke")):
            store.add_audit(
                AuditEntry(
                    tenant=tenant, token="t", action=action, subject="s", request_id="r", detail={"n": 1}
                )
            )
        assert [entry.action for entry in store.audit()] == ["revoke", "cancel", "submit"]
        mine = store.audit("weavers", limit=1)
        assert [entry.action for entry in mine] == ["revoke"]
        assert [entry.action for entry in store.audit("weavers", before=mine[0].number)] == ["submit"]
        assert mine[0].detail == {"n": 1} and mine[0].at > 0
