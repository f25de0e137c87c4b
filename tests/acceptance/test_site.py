"""The documentation site is built without a warning: every link leads somewhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the extra docs is not installed")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_of_the_docs_is_on_the_site(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")]
    missing = [page for page in pages if page.name != "index" and not (site / page / "index.html").exists()]
    assert missing == [] and (site / "index.html").exists()


def test_the_reference_of_python_has_what_users_import(site: Path) -> None:
    text = (site / "python" / "index.html").read_text()
    for name in ("session.Session.autotune", "client.Client.submit", "backends.base.Backend"):
        assert f'id="tuneloom.{name}"' in text
