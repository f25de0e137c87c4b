"""Jobs that continue a bundle: tuned again for the sizes that it was asked for most often."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.requests.sources import job_names
from tuneloom.errors import BundleError
from tuneloom.model import JobSpec
from tuneloom.tuners.tvm.bundles.loading import read_manifest
from tuneloom.tuners.tvm.bundles.one_file import opened
from tuneloom.tuners.tvm.runner.asked import SizeLog

_KEPT = {"model": "model", "shapes": "shapes", "dtype": "dtype", "device": "device_key"}
"""Fields of a job, and where the provenance of a bundle has them."""


def job_from_log(bundle: Path, values: Mapping[str, Any]) -> JobSpec:
    """The job of a bundle once more, with other `values` where these are given, for the sizes in its log.

    Raises BundleError for a bundle whose shapes are fixed, and for one that was not run yet.
    """
    manifest = read_manifest(bundle)
    if "sizes" not in manifest:
        raise BundleError(
            f"{bundle} has fixed shapes; --from-log is for bundles tuned with a range of sizes, "
            "as in --shape x=1..64,3,224,224"
        )
    asked = SizeLog(opened(bundle)).read()
    if not asked:
        raise BundleError(f"{bundle} has no log of sizes yet; run it first")
    provenance = manifest["provenance"]
    kept = {name: provenance[place] for name, place in _KEPT.items()}
    kept |= {"target": manifest["target"]["text"], "name": job_names([kept["model"]])[0]}
    return replace(job_spec({**kept, **values}), asked=tuple(sorted(asked.items())))
