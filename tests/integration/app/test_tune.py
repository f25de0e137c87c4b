"""From a model file to a bundle, with real TVM and real processes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.commands import Workplace
from support.models.onnx_files import network_input, write_network
from tuneloom.store import RunStatus, open_store

ort = pytest.importorskip("onnxruntime")


def expected(folder: Path) -> Any:
    session = ort.InferenceSession(str(folder / "net.onnx"), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": network_input()})[0]


def test_a_tuned_model_has_its_budget_spent_and_its_result_kept(tuned: Any) -> None:
    (job,) = tuned.printed["jobs"]
    assert job["status"] == "finished"
    assert job["result"]["trials"] == len(tuned.place.trials()) == 16
    assert job["result"]["output_difference"] < 1e-3
    assert job["result"]["latency_after_s"] > 0
    assert tuned.error == ""
    store = open_store(tuned.place.store)
    assert store.runs()[0].status is RunStatus.FINISHED
    assert {span.kind for span in store.spans(store.runs()[0].id)} >= {"select", "build", "profile", "update"}
    store.close()


def test_a_bundle_says_what_it_is_and_where_it_comes_from(tuned: Any) -> None:
    manifest = json.loads((tuned.bundle / "bundle.json").read_text())
    assert manifest["inputs"] == [{"name": "x", "shape": [1, 8, 8, 8], "dtype": "float32"}]
    assert manifest["outputs"][0]["shape"] == [1, 16, 8, 8]
    provenance = manifest["provenance"]
    assert provenance["run"] == tuned.printed["run"] and provenance["trials"] == 16
    assert provenance["measuring_policy"] and provenance["tvm"] and provenance["seed"] == 0
    used = [kernel for kernel in manifest["kernels"].values() if kernel["used"]]
    assert len(json.loads((tuned.bundle / "schedules.json").read_text())) == len(used)
    assert not list(tuned.place.folder.glob(".*unfinished"))


def test_the_bundle_runs_and_is_timed_from_the_command_line(tuned: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", network_input())
    there = (str(tmp_path / "x.npy"), str(tmp_path / "y.npy"))
    done = tuned.place.run("run", "fast", "--input", there[0], "--output", there[1])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    np.testing.assert_allclose(np.load(there[1]), expected(tuned.place.folder), rtol=1e-4, atol=1e-5)
    timed = tuned.place.run("evaluate", "fast", "--seconds", "0.2", "--json")
    assert timed.returncode == 0 and timed.stderr == ""
    assert 0 < json.loads(timed.stdout)["low_s"] <= json.loads(timed.stdout)["median_s"]


def test_the_bundle_runs_where_there_is_only_numpy_and_the_runtime_of_tvm(tuned: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", network_input())
    without = (
        "import runpy, sys; sys.modules['tuneloom'] = None; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    program = f"import sys; sys.argv = sys.argv[1:]; {without}"
    words = [str(tuned.bundle / "run.py"), "--input", "x.npy", "--output", "y.npy"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        env=os.environ | {"TVM_USE_RUNTIME_LIB": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    np.testing.assert_allclose(
        np.load(tmp_path / "y.npy"), expected(tuned.place.folder), rtol=1e-4, atol=1e-5
    )


def test_a_bundle_for_another_cpu_says_so(tuned: Any, place: Workplace) -> None:
    foreign = shutil.copytree(tuned.bundle, place.folder / "foreign")
    manifest = json.loads((foreign / "bundle.json").read_text())
    manifest["target"] |= {
        "mcpu": "future9000",
        "cpu_features": ["avx2048"],
        "cpu_flags": {"avx2048": "avx2048"},
    }
    (foreign / "bundle.json").write_text(json.dumps(manifest))
    said = place.run("evaluate", "foreign")
    assert said.returncode == 2 and said.stderr.count("\n") == 1
    assert "'future9000'" in said.stderr and "avx2048" in said.stderr
    np.save(place.folder / "x.npy", network_input())
    command = [sys.executable, str(foreign / "run.py"), "--input", "x.npy", "--output", "y.npy"]
    alone = subprocess.run(command, cwd=place.folder, capture_output=True, text=True, check=False)
    assert alone.returncode == 2 and "future9000" in alone.stderr


def test_tasks_tells_what_is_known_already(tuned: Any) -> None:
    done = tuned.place.run("tasks", "net.onnx", "--json")
    tasks = json.loads(done.stdout)
    assert sum(task["records"] for task in tasks) == 16
    assert all(task["best_s"] > 0 and "→" in task["shapes"] for task in tasks)


def test_two_models_are_two_jobs_of_one_run(place: Workplace) -> None:
    write_network(place.folder / "wide.onnx", channels=16)
    done = place.run("tune", "net.onnx", "wide.onnx", "--trials", "6", "--out", "fast", "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert [(job["name"], job["result"]["trials"]) for job in printed["jobs"]] == [("net", 6), ("wide", 6)]
    assert (place.folder / "fast" / "net" / "model.so").is_file()
    assert (place.folder / "fast" / "wide" / "model.so").is_file()


def test_without_a_linker_nothing_is_started_and_the_remedy_is_told(place: Workplace) -> None:
    (place.folder / "bin").mkdir()
    done = place.run("tune", "net.onnx", "--trials", "6", "--out", "fast", PATH=str(place.folder / "bin"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "is not installed; apt install binutils" in done.stderr, (
        done.stderr
    )
    assert sorted(path.name for path in place.folder.iterdir()) == ["bin", "net.onnx"]


def test_when_every_build_fails_the_first_error_is_told_and_no_bundle_is_left(place: Workplace) -> None:
    linker = place.folder / "bin" / "ld"
    linker.parent.mkdir()
    linker.write_text("#!/bin/sh\nexit 7\n")
    linker.chmod(0o755)
    done = place.run("tune", "net.onnx", "--trials", "6", "--out", "fast", PATH=str(linker.parent))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "none of" in done.stderr, done.stderr
    assert sorted(path.name for path in place.folder.iterdir()) == ["bin", "home", "net.onnx"]


def test_a_goal_against_onnx_runtime_is_met_and_what_is_known_is_not_searched_again(place: Workplace) -> None:
    words = ("tune", "net.onnx", "--trials", "64", "--batch", "4", "--json")
    first = place.run(*words, "--goal-ratio", "1000")
    assert first.returncode == 0, first.stderr
    (job,) = json.loads(first.stdout)["jobs"]
    goal = job["result"]["goal"]
    assert goal["met"] and goal["wanted_s"] == 1000 * goal["onnxruntime_s"] > 0
    again = place.run(*words, "--goal-ms", "10000")
    (known,) = json.loads(again.stdout)["jobs"]
    assert known["result"]["goal"] == {"wanted_s": 10.0, "met": True}
    store = open_store(place.store)
    tasks = store.tasks(f"{json.loads(again.stdout)['run']}.1")
    store.close()
    reasons = {task.plan["reason"] for task in tasks}
    assert reasons == {"what is known meets the goal: measured again, nothing is searched"}
    assert known["result"]["trials"] <= 3 * len(tasks), "the default and two records of each kernel"
