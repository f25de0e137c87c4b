"""Environments that have the wheel, what its metadata asks for, and nothing else."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PLAIN = "plain"


def linked(root: Path, wheel: Path, extras: str = "") -> Path:
    """The Python of an environment whose packages are links to those of this one; takes a second, no network.

    Environments with extras share the installed wheel with the one without. Raises PackageNotFoundError if
    something that the extras ask for is not installed here.
    """
    if extras and not (root / PLAIN).exists():
        linked(root, wheel)
    python, packages = _environment(root / (extras or PLAIN), "--without-pip")
    if not extras:
        options = ["-q", "--no-deps", "--no-index", "--no-compile"]
        _run(sys.executable, "-m", "pip", "--python", str(python), "install", *options, str(wheel))
    [shared] = (root / PLAIN / "lib").glob("python*/site-packages")
    [tuneloom] = distributions(name="tuneloom", path=[str(shared)])
    for package in [tuneloom, *_closure(tuneloom, set(extras.split(",")))]:
        _link(package, packages)
    return python


def downloaded(root: Path, wheel: Path, extras: str = "") -> Path:
    """The Python of an environment that pip has filled from a package index, as it does for users."""
    python, _ = _environment(root / (extras or PLAIN))
    named = f"tuneloom[{extras}]" if extras else "tuneloom"
    _run(str(python), "-m", "pip", "install", "-q", f"{named} @ {wheel.as_uri()}")
    return python


def _environment(folder: Path, *options: str) -> tuple[Path, Path]:
    """An environment's Python and its folder of packages."""
    _run(sys.executable, "-m", "venv", *options, str(folder))
    [packages] = (folder / "lib").glob("python*/site-packages")
    return folder / "bin" / "python", packages


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _closure(root: Distribution, extras: set[str]) -> list[Distribution]:
    """Everything that a package needs with these extras, directly or not."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = list(_needs(root, extras))
    while waiting:
        requirement = waiting.pop()
        name, wanted = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, wanted) not in seen:
            seen.add((name, wanted))
            found[name] = distribution(name)
            waiting += _needs(found[name], set(wanted))
    return list(found.values())


def _needs(package: Distribution, extras: set[str]) -> Iterator[Requirement]:
    for line in package.requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in extras | {""}
        ):
            yield requirement


def _link(package: Distribution, packages: Path) -> None:
    for top in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
        link, target = packages / top, Path(str(package.locate_file(top)))
        assert not link.exists() or link.resolve() == target.resolve(), f"{top} belongs to two packages"
        if not link.exists():
            link.symlink_to(target)
