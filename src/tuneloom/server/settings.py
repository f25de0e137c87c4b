"""How a server works, from the command line and from `serve.toml`."""

import tomllib
from dataclasses import dataclass, field, fields, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from tuneloom.app.hosting.retention import Retention
from tuneloom.app.requests.schema import nearest
from tuneloom.errors import InputError
from tuneloom.model.fields import BYTES, COUNT, NATURAL, POSITIVE, TEXT, FieldType, NumberKind, Words

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


def _setting(kind: FieldType, default: Any = None) -> Any:
    """An attribute that has to be of this kind."""
    return field(default=default, metadata={"kind": kind})


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

    host: str = _setting(TEXT, "127.0.0.1")
    port: int = _setting(_PORT, 8321)
    store: str | None = _setting(TEXT)
    executors: int = _setting(NATURAL, 1)
    device_cores: int = _setting(COUNT, 1)
    policy: str = _setting(TEXT, "load-aware")
    tuners: tuple[str, ...] = _setting(_TEXTS, ("tvm",))
    formats: tuple[str, ...] = _setting(_TEXTS, (".onnx", ".tflite"))
    most_model_bytes: int = _setting(BYTES, 2 * 2**30)
    most_body_bytes: int = _setting(BYTES, 2**20)
    most_streams: int = _setting(COUNT, 256)
    rate: float = _setting(POSITIVE, 50.0)
    burst: int = _setting(COUNT, 200)
    proxies: tuple[str, ...] = _setting(_NETWORKS, ())
    certificate: str | None = _setting(TEXT)
    private_key: str | None = _setting(TEXT)
    files: str | None = _setting(TEXT)
    farm: str | None = _setting(TEXT)
    keep_bundles_days: float | None = _setting(POSITIVE)
    keep_models_days: float | None = _setting(POSITIVE)
    keep_logs_days: float | None = _setting(POSITIVE)

    @property
    def retention(self) -> Retention:
        """How long what is kept is kept."""
        return Retention(
            bundles_days=self.keep_bundles_days,
            models_days=self.keep_models_days,
            logs_days=self.keep_logs_days,
        )

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if value is not None and not kind.fits(value):
                raise InputError(f"{name!r} must be {kind.words_for(value)}, got {value!r}", field=name)
        if (self.certificate is None) != (self.private_key is None):
            raise InputError("TLS needs both, 'certificate' and 'private_key'", field="certificate")


_KINDS: dict[str, FieldType] = {each.name: each.metadata["kind"] for each in fields(ServerSettings)}


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
        raise InputError(f"{path} is not a TOML file: {error}; mend it, or give another --config") from error
    for name in values:
        if name not in _KINDS:
            raise InputError(f"{path}: unknown key {name!r}; {nearest(name, _KINDS)}", field=name)
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
