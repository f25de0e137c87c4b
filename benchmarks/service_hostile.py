"""Hostile requests against a server that listens: no 5xx, no byte of another tenant, bounded memory.

    python benchmarks/service_hostile.py [--requests 10000] [--seed 1]

Writes a row to benchmarks/results/service_hostile.json, one per seed, so that many requests can be made in
pieces. Exits with 1 if one was answered with 5xx, gave away what belongs to another tenant, or memory grew
beyond what is allowed.
"""

import argparse
import gzip
import json
import random
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil

from serving import Team, team
from tuneloom.store import Role

RESULTS = Path(__file__).parent / "results" / "service_hostile.json"
SECRET = "secret-of-the-spinners"
MODEL = "mock:tasks=1,size=16"
MOST_GROWTH_MB = 100.0
API = "/api/v1"

ODD_VALUES: tuple[Any, ...] = (-1, 0, 2**63, 1e308, "8", None, [], {}, True, "\x00", "\ud800", "x" * 5000)
FIELDS = [
    "trials",
    "seconds",
    "goal_ms",
    "goal_ratio",
    "priority",
    "model",
    "name",
    "shapes",
    "pad",
    "seed",
    "batch",
    "out",
]
TYPES = ("text/xml", "multipart/form-data", "application/x-www-form-urlencoded", "a/b;c", "")
BODIES = (b"<a/>", b"\xff\xfe\x00", b"[" * 5000, b"{" * 5000, b'{"model":', b"null", b'"a"')
ZIPPED = gzip.compress(b"\x00" * 10_000_000)
HEAD = b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\n"

Answer = tuple[int, bytes]


class Attacker:
    """Knows a tenant's token and the ids of another tenant's things."""

    def __init__(self, made: Team, chance: random.Random) -> None:
        self.chance = chance
        self.port = made.port
        self.token = made.token("weavers")
        self.reader = made.token("weavers", Role.READER)
        self.http = httpx.Client(base_url=made.url, timeout=60)
        theirs = {"Authorization": f"Bearer {made.token('spinners')}"}
        asked = {"model": MODEL, "name": SECRET}
        self.job = self.http.post(f"{API}/jobs", headers=theirs, json=asked).json()["id"]
        content = b"\x08\x08" + SECRET.encode() * 20
        told = self.http.post(f"{API}/models?name={SECRET}.onnx", headers=theirs, content=content)
        self.digest = told.json()["digest"]
        self.kinds: list[Callable[[], Answer]] = [
            self.wrong_token,
            self.foreign_id,
            self.path_trick,
            self.odd_number,
            self.odd_body,
            self.wrong_type,
            self.odd_header,
            self.bomb,
            self.torn_upload,
            self.raw_bytes,
        ]

    def ask(self, method: str, path: str, token: str | None = None, **more: Any) -> Answer:
        headers = {"Authorization": f"Bearer {token or self.token}"} | more.pop("headers", {})
        answer = self.http.request(method, path, headers=headers, **more)
        return answer.status_code, answer.content

    def wrong_token(self) -> Answer:
        text = self.chance.choice(
            [
                "",
                "tl_",
                "tl_x_y",
                "a" * 5000,
                self.token[:-1],
                self.token + "a",
                "tl_" + "0" * 16 + "_" + "a" * 43,
            ]
        )
        return self.ask(
            "GET", f"{API}/{self.chance.choice(['jobs', 'models', 'self', 'bank', 'tenants'])}", text
        )

    def foreign_id(self) -> Answer:
        part = self.chance.choice(
            ["", "/bundle", "/tasks", "/curve", "/report", "/timeline", "/log", "/provenance", "/events"]
        )
        paths = [f"{API}/jobs/{self.job}{part}", f"{API}/models/{self.digest}"]
        if self.chance.random() < 0.3:
            action = self.chance.choice(["pause", "resume", "cancel"])
            return self.ask("POST", f"{API}/jobs/{self.job}/{action}")
        if self.chance.random() < 0.2:
            return self.ask("GET", f"{API}/jobs", params={"tenant": self.chance.choice(["spinners", "*"])})
        if self.chance.random() < 0.2:
            return self.ask("POST", f"{API}/jobs", json={"model": self.digest})
        return self.ask(self.chance.choice(["GET", "GET", "DELETE", "PATCH"]), self.chance.choice(paths))

    def path_trick(self) -> Answer:
        trick = self.chance.choice(
            [
                "..%2f..%2fetc%2fpasswd",
                "%2e%2e/%2e%2e",
                "a%00b",
                "%ff%fe",
                "....//",
                "a" * 3000,
                "*",
                "'",
                "%0d%0aX:1",
            ]
        )
        room = self.chance.choice(["jobs", "models", "tokens", "tenants", "page", "static"])
        return self.ask("GET", f"{API}/{room}/{trick}")

    def odd_number(self) -> Answer:
        number = self.chance.choice(["-1", "0", "1e309", "9" * 40, "NaN", "0x10", "1.5", "", "٣", "--1"])
        field = self.chance.choice(["limit", "before"])
        return self.ask("GET", f"{API}/{self.chance.choice(['jobs', 'models'])}", params={field: number})

    def odd_body(self) -> Answer:
        body = json.dumps({"model": MODEL, self.chance.choice(FIELDS): self.chance.choice(ODD_VALUES)})
        return self.ask("POST", f"{API}/jobs", content=body, headers={"Content-Type": "application/json"})

    def wrong_type(self) -> Answer:
        path = self.chance.choice([f"{API}/jobs", f"{API}/models?name=a.onnx", f"{API}/tokens"])
        headers = {"Content-Type": self.chance.choice(TYPES)}
        return self.ask("POST", path, content=self.chance.choice(BODIES), headers=headers)

    def odd_header(self) -> Answer:
        name, value = self.chance.choice(
            [
                ("Last-Event-ID", "9" * 90),
                ("Idempotency-Key", "k" * 300),
                ("If-None-Match", '"' * 500),
                ("X-Forwarded-For", "1" * 4000),
                ("Range", "bytes=0-" + "9" * 50),
                ("Cookie", "tuneloom=" + "a" * 2000),
                ("Expect", "100-continue"),
            ]
        )
        return self.ask("GET", f"{API}/jobs/{self.job}", headers={name: value})

    def bomb(self) -> Answer:
        """Files that claim to be, or unpack to, far more than they are."""
        bomb = self.chance.choice(
            [
                ZIPPED,
                b"\x3a\xff\xff\xff\x7f" + b"\x00" * 50,
                b"\x0a\xff\xff\xff\xff\x0f",
                b"\x3a\x04" * 2000,
                b"PK\x03\x04" + b"\x00" * 100,
                bytes(self.chance.randrange(256) for _ in range(200)),
            ]
        )
        kind = {"Content-Type": "application/octet-stream"}
        return self.ask("POST", f"{API}/models?name=bomb.onnx", content=bomb, headers=kind)

    def torn_upload(self) -> Answer:
        head = (
            f"POST {API}/models?name=torn.onnx HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\n"
        )
        return self.send(f"{head}Content-Length: 100000\r\n\r\n".encode() + b"x" * 500, wait=False)

    def raw_bytes(self) -> Answer:
        return self.send(
            self.chance.choice(
                [
                    b"\x00" * 100,
                    b"GET / HTTP/9.9\r\n\r\n",
                    b"GET " + b"/" * 20000 + b" HTTP/1.1\r\n\r\n",
                    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
                    HEAD + b"Content-Length: -5\r\n\r\n",
                    HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                    HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
                ]
            )
        )

    def send(self, content: bytes, *, wait: bool = True) -> Answer:
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            found = b""
            while wait and (piece := connection.recv(65536)):
                found += piece
        words = found.split(None, 2)
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with team() as made:
        result = measure(made, options.requests, random.Random(options.seed))
    keep({"seed": options.seed, **result})
    print(json.dumps(result, indent=2))
    bad = result["server_errors"] or result["leaks"] or result["growth_mb"] > MOST_GROWTH_MB
    return 1 if bad else 0


def keep(row: dict[str, Any]) -> None:
    """Replace the row of the same seed."""
    old = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    rows = [*(other for other in old if other["seed"] != row["seed"]), row]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(sorted(rows, key=lambda each: int(each["seed"])), indent=2) + "\n")


def measure(made: Team, requests: int, chance: random.Random) -> dict[str, Any]:
    server = psutil.Process(made.serve().pid)
    attacker = Attacker(made, chance)
    statuses: Counter[str] = Counter()
    errors: list[str] = []
    leaks: list[str] = []
    for kind in attacker.kinds * 5:  # everything once or more before memory is looked at
        kind()
    before = peak = server.memory_info().rss
    began_s = time.monotonic()
    for number in range(requests):
        kind = attacker.kinds[number % len(attacker.kinds)]
        status, content = kind()
        statuses[str(status)] += 1
        if status >= 500:
            errors.append(f"{kind.__name__}: {status} {content[:200]!r}")
        if SECRET.encode() in content:
            leaks.append(f"{kind.__name__}: {content[:200]!r}")
        if number % 100 == 0:
            peak = max(peak, server.memory_info().rss)
    alive = attacker.ask("GET", f"{API}/self")[0] == 200
    return {
        "requests": requests,
        "statuses": dict(sorted(statuses.items())),
        "server_errors": len(errors),
        "leaks": len(leaks),
        "examples": (errors + leaks)[:5],
        "alive": alive,
        "memory_mb": before / 1e6,
        "growth_mb": (max(peak, server.memory_info().rss) - before) / 1e6,
        "seconds": time.monotonic() - began_s,
    }


if __name__ == "__main__":
    sys.exit(main())
