"""Where what models lowered to is kept: beside the default store."""

from tuneloom.store import default_place


def lowered_folder() -> str:
    """A folder on this machine; runs on any store share it."""
    return str(default_place().parent / "lowered")
