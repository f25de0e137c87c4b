"""The programs of docs/pytorch.md work as written."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "pytorch.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.S | re.M)
START = "import torch\ntorch.set_num_threads(1)\n"


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_the_programs_of_the_page_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNELOOM_HOME", str(tmp_path / "home"))
    assert PROGRAMS
    text = START + "\n".join(PROGRAMS).replace("trials=400", "trials=2").replace(
        '"trials": 400', '"trials": 2'
    )
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "stays in PyTorch" not in done.stderr
