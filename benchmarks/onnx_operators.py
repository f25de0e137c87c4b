"""The node tests that the package `onnx` ships: which operators come in and come out right.

    python benchmarks/onnx_operators.py [NAME…] [--resume] [--seconds S] [--out FILE]

Every test case is imported, compiled without tuning and run, in a process of its own, and its outputs are
compared with those that the case holds. In node tests everything is an input, also what a model
has as a constant (axes, sizes, weights); a case that fails so is tried again with all inputs but
the first as constants, and then with ONNX Runtime's help; each is counted apart. With --resume, cases that
the file has already are skipped; --seconds begins no further case after so long.
"""

import argparse
import json
import multiprocessing
import os
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

LIMIT_S = 120
OUT = Path("benchmarks/results/onnx_operators.json")
BY_CHANCE = ("Bernoulli", "Multinomial")
ROUNDING = {"float16": 4e-3, "bfloat16": 3e-2}
"""What four roundings in half precision come to; single precision is held to 1e-3, as ONNX does it."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="run only cases whose name matches one of these patterns")
    parser.add_argument("--most", type=int, default=None, help="at most so many cases of each operator")
    parser.add_argument("--resume", action="store_true", help="only cases that the file lacks")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    from tuneloom.tuners.tvm.warmth import warm_up

    warm_up()
    out = options.out or (None if options.names and not options.resume else OUT)
    rows = json.loads(out.read_text()) if options.resume and out is not None and out.is_file() else []
    known, ends = {row["case"] for row in rows}, time.monotonic() + options.seconds
    for case in sampled(cases(options.names), options.most):
        if case.name not in known and time.monotonic() < ends:
            rows.append(judged(case))
            print(json.dumps(rows[-1], ensure_ascii=False), flush=True)
            keep(out, rows)
    print(Counter(row["result"] for row in rows))


def keep(out: Path | None, rows: list[dict[str, Any]]) -> None:
    """Write all rows, in the order of the cases' names; the file is never half written."""
    if out is None:
        return
    unfinished = out.with_suffix(".part")
    ordered = sorted(rows, key=lambda row: str(row["case"]))
    unfinished.write_text(json.dumps(ordered, indent=0) + "\n")
    unfinished.replace(out)


def cases(patterns: Sequence[str]) -> list[Any]:
    """The node tests of ONNX's own operators, without those made of expanded functions."""
    from onnx.backend.test.case.node import collect_testcases

    found = [case for case in collect_testcases(None) if not case.name.endswith("_expanded")]
    found = [case for case in found if "_expanded_" not in case.name and "training" not in case.name]
    found = [case for case in found if all(node.domain in ("", "ai.onnx") for node in case.model.graph.node)]
    found = [case for case in found if case.model.graph.node[0].op_type not in BY_CHANCE]
    if patterns:
        found = [case for case in found if any(re.search(pattern, case.name) for pattern in patterns)]
    return sorted(found, key=lambda case: case.name)


def sampled(found: Sequence[Any], most: int | None) -> list[Any]:
    """At most so many cases of each operator, spread over all of them."""
    groups: dict[str, list[Any]] = {}
    for case in found:
        groups.setdefault(case.model.graph.node[0].op_type, []).append(case)
    kept = [group[:: -(-len(group) // most)] if most else group for group in groups.values()]
    return [case for group in kept for case in group]


def judged(case: Any) -> dict[str, Any]:
    """One case: ok, ok with constants or with ONNX Runtime's help, refused, wrong, theirs or lost."""
    started = time.perf_counter()
    ways = [Way(), Way(constant=True)] if len(case.model.graph.input) > 1 else [Way()]
    result, reason = "", ""
    for way in [*ways, *(replace(way, only_tvm=False) for way in ways)]:
        result, why = in_a_process(case, way)
        if result == "ok":
            result, reason = way.name, ""
            break
        reason = why if way.only_tvm else reason
        if result == "wrong":
            if not way.only_tvm and theirs_differ(case):
                result, reason = "theirs", "ONNX Runtime gives another answer than the case"
            break
    row = {"case": case.name, "operator": case.model.graph.node[0].op_type}
    return row | {"result": result, "reason": reason, "seconds": round(time.perf_counter() - started, 2)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a case is tried: with all inputs but the first as constants, and in TVM alone or not."""

    constant: bool = False
    only_tvm: bool = True

    @property
    def name(self) -> str:
        return "onnxruntime" if not self.only_tvm else "constant" if self.constant else "ok"


def in_a_process(case: Any, way: Way) -> tuple[str, str]:
    """Run a case in a fork, so that whatever happens is over afterwards."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(theirs, case, way))
    process.start()
    theirs.close()
    try:
        answer = ours.recv() if ours.poll(LIMIT_S) else ("lost", f"took longer than {LIMIT_S} s")
    except EOFError:
        answer = ("lost", "the process died")
    process.kill()
    process.join()
    return answer


def _child(pipe: Any, case: Any, way: Way) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    pipe.send(outcome(case, way))


def outcome(case: Any, way: Way) -> tuple[str, str]:
    """Import, compile and run one case here; what came of it, and why."""
    from tuneloom.errors import TuneloomError

    try:
        differences = [
            difference(case, arrays(given), arrays(expected), way) for given, expected in case.data_sets
        ]
    except TuneloomError as error:
        return "refused", str(error)
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        return "refused", f"{type(error).__name__}: {lines[-1] if lines else ''}"
    worst = next((text for text in differences if text), "")
    return ("wrong", worst) if worst else ("ok", "")


def arrays(values: Sequence[Any]) -> list[Any]:
    """Values as arrays; types that NumPy lacks are stored as tensors of ONNX."""
    import onnx

    return [onnx.numpy_helper.to_array(one) if isinstance(one, onnx.TensorProto) else one for one in values]


def difference(case: Any, inputs: Sequence[Any], outputs: Sequence[Any], way: Way) -> str:
    """What differs from the expected outputs; nothing if all agree within the case's tolerance."""
    from tuneloom.backends.resolving import resolve_target
    from tuneloom.tuners.tvm.lowering.graph import lower
    from tuneloom.tuners.tvm.models.compiling.building import build_model

    imported, values = imported_case(case, inputs, way)
    got = build_model(lower(imported, resolve_target("cpu")), {}).open().run(values)
    return apart(case, [info.name for info in imported.outputs], got, outputs)


def theirs_differ(case: Any) -> bool:
    """Whether ONNX Runtime alone gives other outputs than the case holds."""
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(
            case.model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        names = [value.name for value in session.get_inputs()]
        outputs = [value.name for value in session.get_outputs()]
        return any(
            apart(case, outputs, session.run(None, dict(zip(names, given, strict=True))), expected)
            for given, expected in case.data_sets
        )
    except Exception:
        return False


def apart(case: Any, names: Sequence[str], got: Sequence[Any], outputs: Sequence[Any]) -> str:
    """What is not as expected; nothing if all agrees within the tolerance."""
    for name, ours, theirs in zip(names, got, outputs, strict=True):
        expected = np.asarray(theirs)
        if ours.shape != expected.shape or str(ours.dtype) != str(expected.dtype):
            return f"{name} is {ours.dtype} {ours.shape}, expected {expected.dtype} {expected.shape}"
        wide = expected.astype(np.float64)
        size = float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0))
        near = np.isclose(
            ours.astype(np.float64),
            wide,
            rtol=max(case.rtol, ROUNDING.get(str(expected.dtype), 1e-3)),
            atol=max(case.atol, 1e-5, 1e-6 * size),
            equal_nan=True,
        )
        if not near.all():
            return f"{name} differs in {np.count_nonzero(~near)} of {near.size}"
    return ""


def imported_case(case: Any, inputs: Sequence[Any], way: Way) -> tuple[Any, list[Any]]:
    """The case as an imported model, and the values of the inputs it still has."""
    import onnx

    from tuneloom.tuners.tvm.importing.onnx.graphs import import_onnx
    from tuneloom.tuners.tvm.importing.sources import _finish

    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    names = [value.name for value in model.graph.input]
    kept = list(zip(names, inputs, strict=True))
    if way.constant:
        for name, value in kept[1:]:
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        kept = kept[:1]
    shapes = {name: np.asarray(value).shape for name, value in kept if np.asarray(value).ndim}
    imported = _finish(case.name, import_onnx(model, case.name, shapes, only_tvm=way.only_tvm), case.name)
    return imported, [np.asarray(value) for _, value in kept]


if __name__ == "__main__":
    main()
