"""Tokens and sessions: secrets are shown once, kept as digests, compared in constant time.

A token is `tl_`, the public id of its row and a secret of 256 random bits. Such a secret can't
be guessed, so one round of SHA-256 protects it as well as a slow hash would. A token is exchanged once
for a session of the page; the browser then holds a random secret of its own, in a cookie that no script
can read, and never the token. A write in a session needs two things besides the cookie: it comes from our
own page, and it carries a proof that only our page can read.
"""

import hashlib
import hmac
import re
import secrets
import time
from urllib.parse import urlsplit

from fastapi import Request, Response

from tuneloom.server.problems import Problem
from tuneloom.store import Role, SessionRecord, Store, TokenRecord

_TOKEN = re.compile(r"tl_([0-9a-f]{16})_([A-Za-z0-9_-]{43})\Z")


def make_token(
    store: Store, tenant: str, name: str, role: Role, expires: float | None = None
) -> tuple[TokenRecord, str]:
    """A new token of a tenant, and the text that opens with it: nobody can tell that again."""
    secret = secrets.token_urlsafe(32)
    record = store.add_token(tenant, name, role, digest_of_secret(secret), expires)
    return record, f"tl_{record.id}_{secret}"


def digest_of_secret(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def bearer(store: Store, text: str) -> TokenRecord | None:
    """The token that a text is, if it is one that opens something now."""
    parts = _TOKEN.match(text)
    if parts is None:
        return None
    found = store.token_with_digest(parts[1])
    record, digest = found if found is not None else (None, "")
    same = hmac.compare_digest(digest_of_secret(parts[2]), digest)
    return record if record is not None and same and record.is_valid(time.time()) else None


PROOF = "X-CSRF-Token"
LIFETIME_S = 12 * 3600.0
_MOST = 20  # of one token: someone who logs in again and again fills no table
_PLAIN, _SECURE = "tuneloom", "__Host-tuneloom"
_READS = ("GET", "HEAD", "OPTIONS")


def begin_session(store: Store, token: str) -> tuple[SessionRecord, str]:
    """A new session of a token, and its secret for the cookie."""
    secret = secrets.token_urlsafe(32)
    return store.add_session(token, digest_of_secret(secret), time.time() + LIFETIME_S, _MOST), secret


def found_session(store: Store, secret: str) -> SessionRecord | None:
    """The session of a secret, if it opens something now."""
    record = store.session(digest_of_secret(secret)) if secret else None
    return record if record is not None and record.is_valid(time.time()) else None


def end_session(store: Store, secret: str) -> None:
    """Let a secret open nothing any more."""
    store.remove_session(digest_of_secret(secret))


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
