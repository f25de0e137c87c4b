"""Records of common layers that come with the program, one file for each target family.

`tools/starter_bank.py` writes these files. They are imported when the first model of their family is opened,
once per store, so that its search starts from them and a job without trials has something to use.
"""

import os
from hashlib import sha256
from pathlib import Path

from tuneloom.app.bank.files import import_into
from tuneloom.store import Store
from tuneloom.store.running.runs import STARTER

SWITCH = "TUNELOOM_STARTER_BANK"
"""The variable that says `off` where none of these records are wanted."""
FOLDER = Path(__file__).parent


def provide(store: Store, family: str, folder: Path = FOLDER) -> int:
    """Import what came with the program for a target family, unless the store has it; returns how much."""
    path = folder / f"{family}.jsonl.gz"
    if os.environ.get(SWITCH) == "off" or not path.is_file():
        return 0
    command = f"{STARTER} {family} {sha256(path.read_bytes()).hexdigest()[:12]}"
    return 0 if store.has_run(command) else import_into(store, path, command).added
