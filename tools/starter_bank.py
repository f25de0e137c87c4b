"""Write the records that come with the program for one target family, from stores of tuned networks.

python tools/starter_bank.py STORE... --machine "Arm Neoverse N1, 2 cores" [--family llvm-128] [--keep 3]

The file is src/tuneloom/app/bank/starter/FAMILY.jsonl.gz: the fastest records of every kernel, without
default schedules, under the device key `starter-MCPU`, so that nobody takes their times for those of another
machine. Its first line has licence and provenance. Run it on a machine of that family after
`tuneloom tune zoo:resnet50 … --store STORE`.
"""

import argparse
import gzip
import json
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tuneloom import __version__
from tuneloom.app.bank.files import FORMAT, VERSION, export_bank
from tuneloom.app.bank.starter import FOLDER
from tuneloom.store import open_existing

MOST_BYTES = 10 << 20
"""All files together."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("stores", nargs="+", metavar="STORE")
    parser.add_argument("--machine", required=True, help="what the records were measured on, in words")
    parser.add_argument("--family", default="llvm-128", help="llvm-128, llvm-256, llvm-512, sm_90, …")
    parser.add_argument("--keep", type=int, default=3, metavar="N", help="records per kernel (default: 3)")
    options = parser.parse_args()
    lines = [line for store in options.stores for line in exported(store, options.family)]
    workloads = {line["workload"]: line for line in lines if "workload" in line}
    records = fastest([line for line in lines if "record" in line], options.keep)
    if not records:
        raise SystemExit(f"no records of {options.family} in {', '.join(options.stores)}; see --family")
    path = FOLDER / f"{options.family}.jsonl.gz"
    used = {line["record"] for line in records}
    head = header(options, records, len(used))
    write(path, [head, *(line for key, line in workloads.items() if key in used), *records])
    total = sum(file.stat().st_size for file in FOLDER.glob("*.gz"))
    print(f"{len(records)} records of {len(used)} kernels in {path}, {path.stat().st_size} bytes")
    if total > MOST_BYTES:
        raise SystemExit(f"the starter bank has {total} bytes, more than {MOST_BYTES}; give a smaller --keep")


def exported(store: str, family: str) -> Iterator[dict[str, Any]]:
    """The lines of a store's bank, without the first."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bank.jsonl"
        export_bank(path, store, family)
        for line in path.read_text().splitlines()[1:]:
            yield json.loads(line)


def fastest(records: Sequence[dict[str, Any]], keep: int) -> list[dict[str, Any]]:
    """The fastest records of every kernel; equal schedules count once, defaults not at all."""
    by_kernel: dict[str, dict[str, dict[str, Any]]] = {}
    for record in sorted(records, key=lambda line: min(line["seconds"])):
        if record["origin"] != "default":
            by_kernel.setdefault(record["record"], {}).setdefault(record["candidate"], record)
    return [_as_starter(one) for kept in by_kernel.values() for one in list(kept.values())[:keep]]


def _as_starter(record: dict[str, Any]) -> dict[str, Any]:
    target = json.loads(record["target"])
    chip = target.get("mcpu") or target.get("arch") or target["kind"]
    return record | {"device": f"starter-{chip}", "origin": "starter", "seconds": [min(record["seconds"])]}


def header(options: argparse.Namespace, records: Sequence[dict[str, Any]], kernels: int) -> dict[str, Any]:
    """What the file says of itself."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "licence": "Apache-2.0",
        "family": options.family,
        "machine": options.machine,
        "networks": sorted({name for store in options.stores for name in tuned_in(store)}),
        "made": datetime.now(UTC).date().isoformat(),
        "tuneloom": __version__,
        "tvm": sorted({record["tvm"] for record in records}),
        "kernels": kernels,
        "records": len(records),
    }


def tuned_in(place: str) -> list[str]:
    """The networks of a store, without the folders where their files were."""
    with open_existing(place) as store:
        specs = [job.spec for run in store.runs() for job in store.jobs(run.id) if job.spec]
    return [Path(str(spec.get("model"))).name for spec in specs]


def write(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """The same lines give the same bytes."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        for line in lines:
            file.write((json.dumps(line, separators=(",", ":")) + "\n").encode())


if __name__ == "__main__":
    main()
