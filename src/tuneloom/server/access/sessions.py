"""Who logged in to the page: a cookie that no script can read, and a proof that a write is meant.

A token is exchanged once for a session; the browser then holds a random secret of its own, which the
store keeps as a digest, and never the token. A write in a session needs two things besides the cookie:
it comes from our own page, and it carries a proof that only our page can read.
"""

import hashlib
import hmac
import secrets
import time
from urllib.parse import urlsplit

from fastapi import Request, Response

from tuneloom.server.problems import Problem
from tuneloom.store import SessionRecord, Store

PROOF = "X-CSRF-Token"
LIFETIME_S = 12 * 3600.0
_MOST = 20  # of one token: someone who logs in again and again fills no table
_PLAIN, _SECURE = "tuneloom", "__Host-tuneloom"
_READS = ("GET", "HEAD", "OPTIONS")


def begin_session(store: Store, token: str) -> tuple[SessionRecord, str]:
    """A new session of a token, and its secret for the cookie."""
    secret = secrets.token_urlsafe(32)
    return store.add_session(token, _digest(secret), time.time() + LIFETIME_S, _MOST), secret


def found_session(store: Store, secret: str) -> SessionRecord | None:
    """The session of a secret, if it opens something now."""
    record = store.session(_digest(secret)) if secret else None
    return record if record is not None and record.is_valid(time.time()) else None


def end_session(store: Store, secret: str) -> None:
    """Let a secret open nothing any more."""
    store.remove_session(_digest(secret))


def secret_of(request: Request) -> str:
    """The secret that the browser sent; over TLS only from the cookie that nobody else can set."""
    found = request.cookies.get(_SECURE, "")
    if not found and request.url.scheme == "http":
        found = request.cookies.get(_PLAIN, "")
    return found[:100]


def proof_of(secret: str) -> str:
    """What a write in a session carries; a page of others can't read it."""
    return hmac.new(secret.encode(), b"csrf", hashlib.sha256).hexdigest()


def require_meant(request: Request, secret: str) -> None:
    """Raise Problem for a write that did not come from our page; reading needs no proof."""
    if request.method in _READS:
        return
    require_own_page(request)
    given = request.headers.get(PROOF, "")
    if not hmac.compare_digest(given.encode(), proof_of(secret).encode()):
        raise Problem(403, f"a write in a session needs the header {PROOF}; reload the page", PROOF)


def require_own_page(request: Request) -> None:
    """Raise Problem if a browser says that another site made this request."""
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    foreign = request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
    if foreign or (origin is not None and urlsplit(origin).netloc != host):
        raise Problem(403, "this request comes from another site; use the page of this server", "Origin")


def give_cookie(request: Request, response: Response, secret: str) -> None:
    """Let the browser keep a session: out of reach of scripts and of other sites."""
    _set(request, response, secret, int(LIFETIME_S))


def take_cookie(request: Request, response: Response) -> None:
    """Let the browser forget its session."""
    _set(request, response, "", 0)


def _set(request: Request, response: Response, secret: str, age_s: int) -> None:
    secure = _over_tls(request)
    response.set_cookie(
        _SECURE if secure else _PLAIN,
        secret,
        max_age=age_s,
        path="/",
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def _over_tls(request: Request) -> bool:
    """Whether the browser speaks TLS, to us or to a proxy before us: it names the scheme it uses."""
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
