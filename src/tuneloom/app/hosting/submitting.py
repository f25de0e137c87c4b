"""From what a tenant asks for to a job that can be submitted: the same checks as jobs files have."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tuneloom.app.hosting.bundles import KEPT
from tuneloom.app.kinds.finding import has_scheme
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.requests.schema import job_fields, uploads
from tuneloom.app.requests.sources import kind_of, require_device
from tuneloom.errors import InputError, ModelError
from tuneloom.model import JobSpec
from tuneloom.store import ModelRecord, ModelState, Store, Submission, TenantLimits

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_MOST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """Who asks, and what a job of theirs may be."""

    tenant: str
    token: str
    limits: TenantLimits
    tuners: Collection[str]
    devices: Collection[str] = ()


def submission_of(
    store: Store, values: Mapping[str, Any], who: Requester, key: str | None = None
) -> Submission:
    """A checked job, ready to be submitted; nothing is stored.

    `values` are those of a jobs file; the model is the digest of one that the tenant uploaded, or a
    name such as `zoo:resnet18`. Raises InputError with the field that is wrong.
    """
    for field in job_fields():
        if not field.remote and values.get(field.name) is not None:
            raise InputError(f"{field.name!r} can't be chosen here; omit it", field=field.name)
    model = str(values.get("model", ""))
    _require_kind(model, values.get("tuner"), who.tuners)
    others = _others(store, values, who.tenant)
    given = {**values, **{field: name for field, (name, _) in others.items()}}
    spec = _uploaded(store, given, who.tenant) if _DIGEST.match(model) else _named(given, model)
    spec = replace(spec, files={**spec.files, **dict(others.values())})
    _require_allowed(spec, who)
    return Submission(
        tenant=who.tenant,
        token=who.token,
        name=spec.name,
        model=model,
        spec=spec.to_json(),
        trials=spec.budget.trials,
        request=_digest(values),
        key=key,
    )


def _uploaded(store: Store, values: Mapping[str, Any], tenant: str) -> JobSpec:
    digest = str(values["model"])
    record = _record(store, tenant, digest, "model")
    if record.name.lower().endswith(tuple(uploads().values())):
        raise ModelError(f"{record.name} is not a model; give its digest where it belongs", field="model")
    file = f"model{record.name[record.name.rfind('.') :]}"
    name = values.get("name") or record.name.rpartition(".")[0][:_MOST_NAME]
    spec = job_spec({**values, "model": file, "name": name})
    return replace(spec, files={file: digest}, out=KEPT)


def _others(store: Store, values: Mapping[str, Any], tenant: str) -> dict[str, tuple[str, str]]:
    """What the job reads beside its model, by field: the name of each file, and its digest."""
    found = {}
    for field, ending in uploads().items():
        if values.get(field) is not None:
            digest = str(values[field])
            record = _record(store, tenant, digest, field)
            if not record.name.lower().endswith(ending):
                raise ModelError(
                    f"{record.name} can't be used as {field!r}; upload a {ending} file", field=field
                )
            found[field] = (f"{field}{ending}", digest)
    return found


def _record(store: Store, tenant: str, digest: str, field: str) -> ModelRecord:
    record = store.model(tenant, digest)
    if record is None:
        raise ModelError(f"no {field} with digest {digest[:12]}…; upload it first", field=field)
    if record.state is ModelState.REFUSED:
        raise ModelError(f"{record.name} can't be used: {record.summary.get('reason', '')}", field=field)
    return record


def _named(values: Mapping[str, Any], model: str) -> JobSpec:
    """A model that a kind finds by its name; a path of the server is never taken from a request."""
    if not has_scheme(model):
        raise ModelError(
            f"{model[:80]!r} is neither the digest of an uploaded model nor a name such as 'zoo:resnet18'",
            field="model",
        )
    kind = kind_of(model, values.get("tuner"))
    spec = job_spec({**values, "name": values.get("name") or kind.named(model)[:_MOST_NAME]})
    kind.require(spec)
    return replace(spec, out=KEPT) if kind.bundles else spec


def _require_kind(model: str, tuner: str | None, accepted: Collection[str]) -> None:
    name = kind_of(model, tuner).name
    if name not in accepted:
        known = ", ".join(accepted)
        raise InputError(f"jobs of {name!r} are not accepted here; accepted: {known}", field="tuner")


def _require_allowed(spec: JobSpec, who: Requester) -> None:
    if abs(spec.priority) > who.limits.most_priority:
        most = who.limits.most_priority
        raise InputError(
            f"'priority' must lie between -{most} and {most}, got {spec.priority}", field="priority"
        )
    if len(spec.name) > _MOST_NAME:
        raise InputError(f"'name' must have at most {_MOST_NAME} characters", field="name")
    require_device(spec, who.devices)


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
