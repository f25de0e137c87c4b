"""Models come in whole, within bounds, and are looked into by a process of their own."""

import hashlib
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tuneloom.app.hosting.uploads import look_into, require_file_name
from tuneloom.app.runs.files import localised
from tuneloom.errors import ModelError
from tuneloom.model import JobSpec

from .conftest import Served


def small_model(name: str = "g") -> bytes:
    """A real model of one node."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], name, ends[:1], ends[1:])
    return bytes(helper.make_model(graph).SerializeToString())


CONTENT = small_model()
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def upload(served: Served, content: bytes = CONTENT, query: str = "name=net.onnx", **headers: str) -> Any:
    """The answer to an upload."""
    kind = {"Content-Type": "application/octet-stream"}
    return served.client.post(
        f"/api/v1/models?{query}", headers=served.headers() | kind | headers, content=content
    )


def test_an_upload_is_kept_once_under_its_digest(served: Served) -> None:
    first, again = upload(served), upload(served, query="name=again.onnx")
    assert (first.status_code, again.status_code) == (201, 200)
    assert (first.json()["digest"], again.json()["name"]) == (DIGEST, "net.onnx")
    assert b"".join(served.store.blob(DIGEST)) == CONTENT
    listed = served.client.get("/api/v1/models", headers=served.headers()).json()["models"]
    assert [model["digest"] for model in listed] == [DIGEST]


def test_an_uploaded_model_can_be_submitted_by_its_tenant_alone(served: Served) -> None:
    upload(served)
    asked = {"model": DIGEST, "trials": 4}
    mine = served.client.post("/api/v1/jobs", headers=served.headers(), json=asked)
    assert (mine.status_code, mine.json()["name"]) == (201, "net")
    theirs = served.client.post("/api/v1/jobs", headers=served.headers("spinners"), json=asked)
    assert (theirs.status_code, theirs.json()["field"]) == (422, "model")
    assert (
        served.client.get(f"/api/v1/models/{DIGEST}", headers=served.headers("spinners")).status_code == 404
    )


def test_a_model_that_is_needed_stays_and_goes_later(served: Served) -> None:
    upload(served)
    job = served.client.post("/api/v1/jobs", headers=served.headers(), json={"model": DIGEST}).json()["id"]
    needed = served.client.delete(f"/api/v1/models/{DIGEST}", headers=served.headers())
    assert (needed.status_code, job in needed.json()["detail"]) == (409, True)
    assert served.store.has_blob(DIGEST)


def test_a_removed_model_takes_its_file_along(served: Served) -> None:
    upload(served)
    assert served.client.delete(f"/api/v1/models/{DIGEST}", headers=served.headers()).status_code == 204
    assert not served.store.has_blob(DIGEST)
    assert served.client.get(f"/api/v1/models/{DIGEST}", headers=served.headers()).status_code == 404


@pytest.mark.parametrize(
    ("content", "query", "headers", "status", "field"),
    [
        (b"", "name=net.onnx", {}, 422, "body"),
        (CONTENT, "name=net.pt2", {}, 422, "name"),
        (CONTENT, "name=.onnx", {}, 422, "name"),
        (CONTENT, f"name=net.onnx&digest={'0' * 64}", {}, 422, "digest"),
        (CONTENT, "name=net.onnx&digest=xyz", {}, 422, "digest"),
        (CONTENT, "", {}, 422, "name"),
        (CONTENT, "name=net.onnx", {"Content-Type": "application/json"}, 415, "Content-Type"),
        (b"x" * 50_001, "name=net.onnx", {}, 413, None),
    ],
)
def test_a_bad_upload_is_refused_and_nothing_stays(
    served: Served, content: bytes, query: str, headers: dict[str, str], status: int, field: str | None
) -> None:
    answer = upload(served, content, query, **headers)
    assert (answer.status_code, answer.json()["field"]) == (status, field)
    assert served.store.models("weavers") == []
    assert not served.store.has_blob(hashlib.sha256(content).hexdigest())


def test_an_upload_beyond_the_quota_is_refused_and_nothing_stays(served: Served) -> None:
    for number in range(2):
        assert upload(served, bytes([number]) * 49_000).status_code == 201
    last = b"z" * 49_000
    refused = upload(served, last)
    assert (refused.status_code, refused.json()["field"]) == (403, "bytes_stored")
    assert not served.store.has_blob(hashlib.sha256(last).hexdigest())


def test_no_part_of_a_user_s_path_is_kept() -> None:
    assert require_file_name("../../etc/net.onnx", [".onnx"]) == "net.onnx"
    assert require_file_name("C:\\models\\net\x1b[2J.onnx", [".onnx"]) == "net_[2J.onnx"
    with pytest.raises(ModelError, match="must end with"):
        require_file_name("net.onnx/", [".onnx"])


@pytest.mark.parametrize(
    "content", [b"\x00" * 100, b"\xff" * 5000, b"PK\x03\x04" + b"\x00" * 50, b"\x3a\xff\xff\xff\x7f"]
)
def test_a_file_that_is_no_model_is_refused_by_the_one_who_looks(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    assert "reason" in look_into(path)


def test_a_good_upload_becomes_ready_and_tells_its_inputs(served: Served) -> None:
    digest = upload(served, small_model("good")).json()["digest"]
    service = served.client.app.state.service  # type: ignore[attr-defined]
    service.inspector.close()  # the model at hand is done first
    service.inspector.look()
    told = served.client.get(f"/api/v1/models/{digest}", headers=served.headers()).json()
    assert (told["state"], told["summary"]["inputs"]) == ("ready", {"x": [1, 8]})


def test_a_model_whose_file_is_lost_keeps_no_other_waiting(served: Served) -> None:
    service = served.client.app.state.service  # type: ignore[attr-defined]
    service.inspector.close()
    lost, good = upload(served).json()["digest"], upload(served, small_model("good")).json()["digest"]
    served.store.drop_blobs(f"model:weavers:{lost}")
    assert service.inspector.look() == 2
    states = {model.digest: model.state.value for model in served.store.models("weavers")}
    assert states == {lost: "refused", good: "ready"}
    again = upload(served)
    assert (again.status_code, again.json()["state"], served.store.has_blob(lost)) == (200, "checking", True)


def test_what_looks_into_a_model_imports_nothing_but_the_reader_of_its_format() -> None:
    words = "import sys; import tuneloom.app.hosting.looking; print('sqlalchemy' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


def archive(**arrays: Any) -> bytes:
    """A NumPy archive."""
    file = io.BytesIO()
    np.savez(file, **(arrays or {"x": np.zeros((2, 8), "float32")}))
    return file.getvalue()


def submit_int8(served: Served, samples: str, model: str = DIGEST, who: str = "weavers") -> Any:
    asked = {"model": model, "trials": 4, "dtype": "int8", "samples": samples, "tolerance": 0.2}
    return served.client.post("/api/v1/jobs", headers=served.headers(who), json=asked)


def test_samples_are_uploaded_as_models_are_and_travel_with_the_job(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(served)
    samples = upload(served, archive(), "name=noise.npz").json()["digest"]
    job = submit_int8(served, samples)
    assert job.status_code == 201, job.text
    spec = JobSpec.from_json(dict(served.store.jobs(job.json()["id"])[0].spec))
    assert (spec.dtype, spec.tolerance, spec.files["samples.npz"]) == ("int8", 0.2, samples)
    served.client.delete(f"/api/v1/models/{samples}", headers=served.headers())
    monkeypatch.setenv("TUNELOOM_HOME", str(tmp_path))
    found = localised(served.store, spec)
    assert Path(found.model).read_bytes() == CONTENT
    assert Path(str(found.samples)).read_bytes() == archive()


def test_samples_for_a_model_of_the_zoo_travel_alone(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = upload(served, archive(), "name=noise.npz").json()["digest"]
    job = submit_int8(served, samples, model="zoo:squeezenet").json()["id"]
    monkeypatch.setenv("TUNELOOM_HOME", str(tmp_path))
    found = localised(served.store, JobSpec.from_json(dict(served.store.jobs(job)[0].spec)))
    assert (found.model, Path(str(found.samples)).read_bytes()) == ("zoo:squeezenet", archive())


def test_samples_that_are_none_are_refused_with_their_field(served: Served) -> None:
    upload(served)
    samples = upload(served, archive(), "name=noise.npz").json()["digest"]
    for wrong in ("0" * 64, DIGEST, "/etc/passwd", "noise.npz"):
        answer = submit_int8(served, wrong)
        assert (answer.status_code, answer.json()["field"]) == (422, "samples"), wrong
    as_model = submit_int8(served, samples, model=samples)
    assert (as_model.status_code, as_model.json()["field"]) == (422, "model")
    theirs = submit_int8(served, samples, model="zoo:squeezenet", who="spinners")
    assert (theirs.status_code, theirs.json()["field"]) == (422, "samples")
    assert served.store.runs() == []


def test_what_is_in_samples_is_found_and_pickles_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "good.npz").write_bytes(archive(x=np.zeros((2, 8))))
    (tmp_path / "pickled.npz").write_bytes(archive(x=np.array([print], dtype=object)))
    (tmp_path / "none.npz").write_bytes(CONTENT)
    assert look_into(tmp_path / "good.npz") == {"format": "npz", "inputs": {"x": [2, 8]}}
    for name in ("pickled.npz", "none.npz"):
        assert look_into(tmp_path / name)["reason"] == "it is not a NumPy archive, or a damaged one"
