"""Where the token for a server comes from: an argument, the environment, or a file that others can't read."""

import json
import os
import stat
from pathlib import Path
from urllib.parse import urlsplit

from tuneloom.errors import InputError

URL, TOKEN = "TUNELOOM_SERVER", "TUNELOOM_TOKEN"
_MINE_ALONE = 0o600


def logins_file() -> Path:
    """`logins.json` in $TUNELOOM_HOME, or in `.tuneloom` in the user's home."""
    home = os.environ.get("TUNELOOM_HOME")
    return (Path(home) if home else Path.home() / ".tuneloom") / "logins.json"


def server_url(given: str | None = None) -> str:
    """The address of the server without a slash at its end; raises InputError if nobody gave one."""
    url = (given or os.environ.get(URL, "")).rstrip("/")
    if not url:
        raise InputError(f"which server? Give --server URL, or set {URL}")
    if not _is_address(url):
        raise InputError(f"{url!r} is not the address of a server, such as http://farm:8321")
    return url


def _is_address(url: str) -> bool:
    """Whether it names a host and, if any, a port that exists: resolvers take ports modulo 65536."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def token_for(url: str, given: str | None = None) -> str:
    """The token for a server; raises InputError if there is none."""
    token = given or os.environ.get(TOKEN) or _kept().get(url)
    if not token:
        raise InputError(f"no token for {url}; run `tuneloom login {url}`, or set {TOKEN}")
    return token.strip()


def keep_token(url: str, token: str) -> Path:
    """Keep a token for later in a file that nobody else can read; returns the file."""
    path = logins_file()
    kept = _kept() | {url: token}
    path.parent.mkdir(parents=True, exist_ok=True)
    growing = path.with_name(f".{path.name}.{os.getpid()}")
    growing.unlink(missing_ok=True)
    with os.fdopen(os.open(growing, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MINE_ALONE), "w") as file:
        json.dump(kept, file, indent=2)
    growing.replace(path)
    return path


def _kept() -> dict[str, str]:
    path = logins_file()
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise InputError(f"others can read {path}; run `chmod 600 {path}`, and make new tokens")
        found: dict[str, str] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"can't read {path}; remove it and log in again") from error
    return found
