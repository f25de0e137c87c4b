"""Steps of a kernel that are named after a model's tensors get names that say what they do.

TVM names a reduction after what it reduces, such as `lv16_red`, and `lv16` is another tensor in
the next model. A kernel's key does not depend on the names of its steps, but schedules look steps up
by name: one that was found in one model would not fit the same kernel of another.
"""

import re
from collections import Counter
from typing import Any

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.statements import rebuilt, with_blocks

_AFTER_A_TENSOR = re.compile(r".*_red(_temp)?(_\d+)?$")


def steady_names(module: Any) -> Any:
    """A module whose kernels name their reductions in order of appearance."""
    tvm = load_tvm()
    changed = {
        gvar: _with_steady_names(function)
        for gvar, function in module.functions.items()
        if isinstance(function, tvm.tirx.PrimFunc)
    }
    return tvm.IRModule({**module.functions, **changed}, attrs=module.attrs)


def _with_steady_names(function: Any) -> Any:
    used: Counter[str] = Counter()

    def renamed(block: Any) -> Any:
        return rebuilt(block, name=_name(str(block.name_hint), used))

    return function.with_body(with_blocks(function.body, renamed))


def _name(given: str, used: Counter[str]) -> str:
    found = _AFTER_A_TENSOR.match(given)
    if found is None:
        return given
    wanted = f"reduced{found[1] or ''}"
    used[wanted] += 1
    return wanted if used[wanted] == 1 else f"{wanted}_{used[wanted] - 1}"
