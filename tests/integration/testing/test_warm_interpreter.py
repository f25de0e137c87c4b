"""Forks of the warm interpreter look like processes that were started anew."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.warm import WarmInterpreter, WarmProcess

PATIENCE_S = 300.0
LOOK = (
    "import os, sys; print(os.getcwd(), os.environ['WHO'], sys.argv[1:], sorted(os.listdir('/proc/self/fd')))"
)


def started(warm: WarmInterpreter, folder: Path, *words: str, **variables: str) -> WarmProcess:
    return warm.start(words, folder, {**os.environ, **variables})


def test_a_fork_has_the_folder_the_variables_and_the_words_it_was_given_and_no_other_files(
    warm: WarmInterpreter, tmp_path: Path
) -> None:
    process = started(warm, tmp_path, "-c", LOOK, "a", "b c", WHO="me")
    out, error = process.communicate(PATIENCE_S)
    looking = "3"  # the folder that is being listed
    assert (out, error) == (f"{tmp_path} me ['a', 'b c'] {['0', '1', '2', looking]}\n", "")
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("code", "exit_code", "error"),
    [
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('no luck')", 1, "no luck\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
    ],
)
def test_its_end_is_told_as_that_of_any_process(
    warm: WarmInterpreter, tmp_path: Path, code: str, exit_code: int, error: str
) -> None:
    process = started(warm, tmp_path, "-c", code)
    assert process.communicate(PATIENCE_S) == ("", error)
    assert process.poll() == process.wait() == exit_code


def test_a_script_finds_its_neighbours_and_modules_of_the_path_but_keeps_nothing_for_the_next(
    warm: WarmInterpreter, tmp_path: Path
) -> None:
    (tmp_path / "neighbour.py").write_text("HERE = 'neighbour'")
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "distant.py").write_text("THERE = 'distant'")
    (tmp_path / "look.py").write_text("import distant, neighbour; print(neighbour.HERE, distant.THERE)")
    process = started(warm, tmp_path, "look.py", PYTHONPATH=str(tmp_path / "far"))
    assert process.communicate(PATIENCE_S) == ("neighbour distant\n", "")
    later = started(warm, tmp_path, "-c", "import distant")
    assert "ModuleNotFoundError" in later.communicate(PATIENCE_S)[1]


def test_it_hears_control_c_and_can_be_killed(warm: WarmInterpreter, tmp_path: Path) -> None:
    code = "import signal; print('ready', flush=True); signal.pause()"
    interrupted, killed = (started(warm, tmp_path, "-c", code) for _ in range(2))
    for process in (interrupted, killed):
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.0)
    interrupted.send_signal(signal.SIGINT)
    killed.kill()
    assert "KeyboardInterrupt" in interrupted.communicate(PATIENCE_S)[1]
    assert killed.wait(PATIENCE_S) == -signal.SIGKILL
    killed.communicate()


def test_a_shell_finds_it_under_the_names_of_users(warm: WarmInterpreter, tmp_path: Path) -> None:
    warm.write_commands(tmp_path)
    command = 'tuneloom --version && python -c "import sys; sys.exit(4)"'
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("tuneloom ") and done.returncode == 4
    assert sys.executable in (tmp_path / "python").read_text()
