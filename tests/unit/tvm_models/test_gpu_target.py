"""The architecture of a CUDA target is that of the GPU which a process sees; the driver's tool is faked."""

import os
from pathlib import Path

import pytest

from tuneloom.backends.cuda.target import cuda_config

TOOL = """#!/bin/sh
if [ "$1" = -i ] && [ "$2" = GPU-old ]; then echo 7.5; else echo 9.0; fi
"""


@pytest.fixture(autouse=True)
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "nvidia-smi"
    path.write_text(TOOL)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


def test_the_gpu_that_a_process_sees_first_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert cuda_config({"kind": "cuda"})["arch"] == "sm_90"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-old,GPU-new")
    assert cuda_config({"kind": "cuda"})["arch"] == "sm_75"


def test_an_architecture_that_is_given_stays() -> None:
    assert cuda_config({"kind": "cuda", "arch": "sm_86"})["arch"] == "sm_86"
