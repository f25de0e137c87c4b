"""Tokens: shown once, kept as a digest, compared in constant time.

A token is `tl_`, the public id of its row and a secret of 256 random bits. Such a secret can't
be guessed, so one round of SHA-256 protects it as well as a slow hash would.
"""

import hashlib
import hmac
import re
import secrets
import time

from tuneloom.store import Role, Store, TokenRecord

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
