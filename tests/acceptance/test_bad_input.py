"""Bad input of every kind: one line that names the thing and the remedy, exit code 2, nothing left."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.commands import Workplace, ended_afterwards, wait_until
from support.models.onnx_files import (
    write_network,
    write_text,
    write_truncated,
    write_unknown_operator,
)
from support.warm import WarmInterpreter
from tuneloom.store import open_existing


def write_farm(path: Path) -> None:
    """A farm with a board where nobody listens."""
    device = "key = 'arm'\nkind = 'rpc'\naddress = '127.0.0.1:1'\ntarget = 'cpu'"
    path.write_text(f"engine = 'local'\n[[devices]]\n{device}\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is lying around, what is typed, and what has to be named."""

    words: tuple[str, ...]
    names: tuple[str, ...]
    prepare: Callable[[Path], object] = lambda _folder: None


CASES = {
    "a missing file": Case(words=("missing.onnx",), names=("missing.onnx", "no such file", "check the path")),
    "a text file named .onnx": Case(
        words=("letter.onnx",),
        names=("letter.onnx", "text file", "exported model"),
        prepare=lambda folder: write_text(folder / "letter.onnx"),
    ),
    "a truncated protobuf": Case(
        words=("half.onnx",),
        names=("half.onnx", "truncated", "again"),
        prepare=lambda folder: write_truncated(folder / "half.onnx"),
    ),
    "an operator TVM does not import": Case(
        words=("odd.onnx",),
        names=("odd.onnx", "Frobnicate", "last_node", "replace it"),
        prepare=lambda folder: write_unknown_operator(folder / "odd.onnx"),
    ),
    "an unbound dynamic shape": Case(
        words=("open.onnx",),
        names=("'x'", "(1,8,H,H)", "--shape x=1,8,224,224"),
        prepare=lambda folder: write_network(folder / "open.onnx", size="H"),
    ),
    "a shape for an input that is not there": Case(
        words=("net.onnx", "--shape", "z=1,8,8,8"),
        names=("'z'", "inputs: x"),
        prepare=lambda folder: write_network(folder / "net.onnx"),
    ),
    "weights saved by torch": Case(
        words=("weights.pt",), names=("weights.pt", "weights alone are not a model", "torch.export.save")
    ),
    "a good model beside a bad one": Case(
        words=("net.onnx", "letter.onnx"),
        names=("letter.onnx", "text file"),
        prepare=lambda folder: (write_network(folder / "net.onnx"), write_text(folder / "letter.onnx")),
    ),
    "an unknown network": Case(words=("zoo:unicorn",), names=("unicorn", "squeezenet")),
    "a target of another architecture": Case(
        words=("net.onnx", "--target", '{"kind": "llvm", "mtriple": "riscv64-linux-gnu"}'),
        names=("riscv64", "this machine is", "--farm FILE"),
        prepare=lambda folder: write_network(folder / "net.onnx"),
    ),
    "a board that does not answer": Case(
        words=("net.onnx", "--farm", "farm.toml", "--device", "arm"),
        names=("arm@127.0.0.1:1", "no answer from 127.0.0.1:1", "Connection refused"),
        prepare=lambda folder: (write_network(folder / "net.onnx"), write_farm(folder / "farm.toml")),
    ),
    "a kind of job that boards know nothing of": Case(
        words=("mock:size=8", "--farm", "farm.toml", "--device", "arm", "--wait-for-devices"),
        names=("mock jobs can't be measured on boards", "--device"),
        prepare=lambda folder: write_farm(folder / "farm.toml"),
    ),
    "an unknown target": Case(
        words=("net.onnx", "--target", "abacus"),
        names=("abacus", "'cpu'", "'cuda'"),
        prepare=lambda folder: write_network(folder / "net.onnx"),
    ),
    "an unknown device key": Case(words=("zoo:resnet18", "--device", "rtx4090"), names=("rtx4090", "'cpu'")),
    "no trials": Case(words=("zoo:resnet18", "--trials", "-1"), names=("--trials", "at least 0", "'-1'")),
    "no number": Case(words=("zoo:resnet18", "--trials", "ten"), names=("--trials", "'ten'", "--help")),
    "an output folder that is not empty": Case(
        words=("zoo:resnet18", "--out", "full"),
        names=("full is not empty", "--out"),
        prepare=lambda folder: ((folder / "full").mkdir(), (folder / "full" / "thesis.tex").touch()),
    ),
    "an output folder that cannot be written": Case(
        words=("zoo:resnet18", "--out", "/proc/fast"), names=("/proc", "choose another place")
    ),
}


def assert_one_line(done: "subprocess.CompletedProcess[str]", *names: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("tuneloom: ") and done.stderr.count("\n") == 1, done.stderr
    for name in names:
        assert name in done.stderr


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_bad_input_gets_one_line_and_leaves_nothing(
    case: Case, tmp_path: Path, warm: WarmInterpreter
) -> None:
    case.prepare(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    out = () if "--out" in case.words else ("--out", "fast")
    done = Workplace(folder=tmp_path, warm=warm).run("tune", *case.words, *out)
    assert_one_line(done, *case.names)
    assert done.stdout == ""
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of 64 KiB, unless a test asks for another size."""
    place = tmp_path / "disk"
    place.mkdir()
    size = getattr(request, "param", "64k")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_bundle_that_does_not_fit_on_the_disk(
    small_disk: Path, tmp_path: Path, warm: WarmInterpreter
) -> None:
    write_network(tmp_path / "net.onnx", channels=128)
    place = Workplace(folder=tmp_path, warm=warm)
    done = place.run("tune", "net.onnx", "--trials", "2", "--out", "disk/fast")
    assert_one_line(done, "fast", "No space left on device")
    assert list(small_disk.iterdir()) == []


@pytest.mark.parametrize("small_disk", ["900k"], indirect=True)
def test_a_disk_that_is_full_in_the_middle_of_a_run_costs_nothing_that_was_measured(
    small_disk: Path, tmp_path: Path, warm: WarmInterpreter
) -> None:
    place = Workplace(folder=tmp_path, environment={"TUNELOOM_HOME": str(small_disk)}, warm=warm)
    done = place.run("tune", "mock:size=100000", "--trials", "3000")
    assert_one_line(done, str(small_disk), "disk is full", "TUNELOOM_HOME")
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    kept = trials_in(small_disk)
    assert kept
    with ended_afterwards(place.start("resume", "last")) as program:
        assert wait_until(program, lambda: len(trials_in(small_disk)) > len(kept))
    assert trials_in(small_disk)[: len(kept)] == kept


def trials_in(home: Path) -> list[str]:
    """The candidates of all trials in a store, in the order of commitment."""
    with closing(open_existing(str(home / "store.db"))) as store:
        (job,) = store.jobs(store.runs()[0].id)
        return [record.trial.candidate.key for record in store.trials(job.id)]


def test_a_store_that_does_not_fit_on_the_disk(
    small_disk: Path, tmp_path: Path, warm: WarmInterpreter
) -> None:
    write_network(tmp_path / "net.onnx")
    place = Workplace(folder=tmp_path, environment={"TUNELOOM_HOME": str(small_disk)}, warm=warm)
    done = place.run("tune", "net.onnx", "--trials", "2", "--out", "fast")
    assert_one_line(done, str(small_disk), "disk is full", "TUNELOOM_HOME")
    assert not (tmp_path / "fast").exists()
