"""Arrays that a bundle is run on, and where its outputs go."""

from pathlib import Path

import numpy as np
import pytest

from tuneloom.errors import InputError, OutputError
from tuneloom.tuners.tvm.bundles.using import _read, _write


def test_an_array_is_read_as_it_was_saved(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3))
    assert _read(str(tmp_path / "x.npy")).tolist() == [0, 1, 2]


def test_what_is_no_array_is_refused_without_advice_to_trust_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "archive.npz", x=np.arange(3))
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "text.npy").write_text("a letter")
    (tmp_path / "empty.npy").touch()
    for name in ("archive.npz", "objects.npy", "text.npy", "empty.npy", "missing.npy", "."):
        with pytest.raises(InputError, match="can't be read as a NumPy array") as caught:
            _read(str(tmp_path / name))
        assert "trust" not in str(caught.value)


@pytest.mark.parametrize("place", [".", "file/y.npy", "missing/y.npy"])
def test_a_place_that_an_output_can_not_go_to_is_named(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=f"can't write {place}: .*; choose another place with --output"):
        _write(Path(place), np.arange(3))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
