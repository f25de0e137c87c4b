"""What `kernel replay --json` prints can be read by any program."""

import json
from math import inf

from tuneloom.cli.lab.kernel_replay import summary_json
from tuneloom.tuners.replay.study import Summary


def test_what_was_never_reached_is_null_and_no_infinity() -> None:
    summary = Summary(
        recording="conv", search="random", runs=2, to_close=inf, spread=0.0, arrived=0.0,
        best={25: inf, 50: 1.5}, invalid_share=0.9, invalid_until_close=0.9,
    )  # fmt: skip
    text = json.dumps(summary_json(summary), allow_nan=False)
    assert json.loads(text)["to_close"] is None
    assert json.loads(text)["best"] == {"25": None, "50": 1.5}
