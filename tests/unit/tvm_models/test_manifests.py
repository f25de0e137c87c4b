"""What is said about a bundle whose manifest is none."""

import json
from pathlib import Path
from typing import Any

import pytest

from tuneloom.errors import BundleError
from tuneloom.tuners.tvm.bundles.loading import read_manifest

TARGET = {"machine": "m68k", "mcpu": "any", "cpu_features": [], "device": "cpu"}
WHOLE = {"format": 1, "name": "n", "inputs": [], "outputs": [], "target": TARGET}


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ([], "does not describe a bundle"),
        ({}, "format None; this version reads 1, 2 and 3: tune the model again"),
        ({"format": 99}, "reads 1, 2 and 3: update Tuneloom, or tune the model again"),
        ({"format": 1}, "damaged: it has no 'target'; tune the model again"),
        ({**WHOLE, "target": 3}, "damaged: it has no 'machine'"),
        ({**WHOLE, "target": {"machine": "m68k"}}, "damaged: it has no 'mcpu'"),
    ],
)
def test_a_manifest_that_describes_no_bundle_is_refused(tmp_path: Path, manifest: Any, words: str) -> None:
    (tmp_path / "bundle.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match=words):
        read_manifest(tmp_path)


def test_a_whole_manifest_is_read(tmp_path: Path) -> None:
    (tmp_path / "bundle.json").write_text(json.dumps(WHOLE))
    assert read_manifest(tmp_path) == WHOLE
