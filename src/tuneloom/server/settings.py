"""How a server works, from the command line and from `serve.toml`."""

import tomllib
from dataclasses import dataclass, fields, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from tuneloom.app.hosting.retention import Retention
from tuneloom.app.requests.fields import nearest
from tuneloom.errors import InputError
from tuneloom.model.fields import TEXT, FieldType, Words
from tuneloom.model.numbers import BYTES, COUNT, NATURAL, POSITIVE, NumberKind

_PORT = NumberKind(words="a port from 0 to 65535", least=0, most=65535, whole=True)
_TEXTS = Words(
    words="a list of texts",
    fits=lambda value: isinstance(value, list | tuple) and all(isinstance(each, str) for each in value),
)


def _is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return True


_NETWORKS = Words(
    words="a list of IP addresses or networks, such as 10.0.0.0/8",
    fits=lambda value: _TEXTS.fits(value) and all(map(_is_network, value)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What an operator may decide.

    `executors` are processes started beside the server. `tuners` are the kinds of jobs that are
    accepted: a kernel job runs code of whoever submits it, so it is never among them by default.
    Uploaded models end with one of `formats`. Rates are requests a second of one token, and of one
    address without a valid token, with `burst` of them at once. `proxies` are addresses or networks
    whose word on the address and scheme of a client is believed. `files` is the address of an object
    store for models and bundles, `farm` the file that describes machines and devices for the
    executors. What is older than the days given is removed; without days it is kept for ever.
    """

    host: str = "127.0.0.1"
    port: int = 8321
    store: str | None = None
    executors: int = 1
    device_cores: int = 1
    policy: str = "load-aware"
    tuners: tuple[str, ...] = ("tvm",)
    formats: tuple[str, ...] = (".onnx", ".tflite")
    most_model_bytes: int = 2 * 2**30
    most_body_bytes: int = 2**20
    most_streams: int = 256
    rate: float = 50.0
    burst: int = 200
    proxies: tuple[str, ...] = ()
    certificate: str | None = None
    private_key: str | None = None
    files: str | None = None
    farm: str | None = None
    keep_bundles_days: float | None = None
    keep_models_days: float | None = None
    keep_logs_days: float | None = None

    @property
    def retention(self) -> Retention:
        """How long what is kept is kept."""
        return Retention(
            bundles_days=self.keep_bundles_days,
            models_days=self.keep_models_days,
            logs_days=self.keep_logs_days,
        )

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kind = _KINDS[field.name]
            if value is not None and not kind.fits(value):
                words = f"{field.name!r} must be {kind.words_for(value)}, got {value!r}"
                raise InputError(words, field=field.name)
        if (self.certificate is None) != (self.private_key is None):
            raise InputError("TLS needs both, 'certificate' and 'private_key'", field="certificate")


_KINDS: dict[str, FieldType] = {
    "host": TEXT,
    "port": _PORT,
    "store": TEXT,
    "executors": NATURAL,
    "device_cores": COUNT,
    "policy": TEXT,
    "tuners": _TEXTS,
    "formats": _TEXTS,
    "most_model_bytes": BYTES,
    "most_body_bytes": BYTES,
    "most_streams": COUNT,
    "rate": POSITIVE,
    "burst": COUNT,
    "proxies": _NETWORKS,
    "certificate": TEXT,
    "private_key": TEXT,
    "files": TEXT,
    "farm": TEXT,
    "keep_bundles_days": POSITIVE,
    "keep_models_days": POSITIVE,
    "keep_logs_days": POSITIVE,
}


def read_settings(path: Path | None, given: dict[str, Any]) -> ServerSettings:
    """The settings of a file with what was given on the command line in their place.

    Raises InputError naming the file and the key.
    """
    values = {} if path is None else _read(path)
    try:
        settings = ServerSettings(**values)
    except InputError as error:
        raise InputError(f"{path}: {error}", field=error.field) from error
    return replace(settings, **{name: value for name, value in given.items() if value is not None})


def _read(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"can't read {path}: {error.strerror}; give another --config") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a TOML file: {error}") from error
    for name in values:
        if name not in _KINDS:
            raise InputError(f"{path}: unknown key {name!r}; {nearest(name, _KINDS)}", field=name)
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
