"""How many requests may come from an address before it is known who asks, and how many from a token after."""

import math
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address

from fastapi import Request

from tuneloom.server.problems import Problem

_MOST_KNOWN = 10_000
_SUBSCRIBER = 64  # bits of an IPv6 address; whoever has one has all addresses that begin so


@dataclass(slots=True)
class Buckets:
    """A bucket for each name that fills at `rate` a second and holds `burst`.

    The names that were seen last are remembered, so memory is bounded whoever knocks.
    """

    rate: float
    burst: float
    _levels: "OrderedDict[str, tuple[float, float]]" = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait_s(self, name: str, now_s: float) -> float:
        """Take one from the bucket of a name; 0, or how long to wait for the next."""
        with self._lock:
            level, at_s = self._levels.pop(name, (self.burst, now_s))
            level = min(self.burst, level + (now_s - at_s) * self.rate)
            enough = level >= 1
            self._levels[name] = (level - 1 if enough else level, now_s)
            if len(self._levels) > _MOST_KNOWN:
                self._levels.popitem(last=False)
        return 0.0 if enough else (1 - level) / self.rate

    def give_back(self, name: str) -> None:
        """Put back what was taken last."""
        with self._lock:
            if name in self._levels:
                level, at_s = self._levels[name]
                self._levels[name] = (min(self.burst, level + 1), at_s)


class RateLimits:
    """Limits on requests of one address without a valid token, and on those of each valid token."""

    def __init__(self, rate: float, burst: int) -> None:
        self._addresses = Buckets(rate, float(burst))
        self._tokens = Buckets(rate, float(burst))

    def knock(self, request: Request) -> None:
        """Count a request whose token was not checked yet; raises Problem if its address asks too often."""
        _take(self._addresses, _address(request))

    def admit(self, request: Request, token: str) -> None:
        """Count a request for the token that was found valid, not for its address any more.

        Raises Problem if the token asks too often.
        """
        self._addresses.give_back(_address(request))
        _take(self._tokens, token)


def _take(buckets: Buckets, name: str) -> None:
    wait_s = buckets.wait_s(name, time.monotonic())
    if wait_s > 0:
        seconds = str(max(1, math.ceil(wait_s)))
        raise Problem(429, f"too many requests; try again in {seconds} s", headers={"Retry-After": seconds})


def _address(request: Request) -> str:
    host = request.client.host if request.client else ""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(int(address) >> (128 - _SUBSCRIBER))
    return str(getattr(address, "ipv4_mapped", None) or address)
