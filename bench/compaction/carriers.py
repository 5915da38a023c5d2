"""Lines that carry a fact: what an agent will need word for word and cannot guess again.

Each carrier is a line as some tool would print it, with the stretch that counts. They are of many shapes, so that
no single pattern finds them, and none is marked in any way. `buried` ones look exactly like the boring lines
around them.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from bench.compaction.projects import Names

Carried = tuple[str, str]
"""A line, and the stretch of it that is the fact."""

Carrier = Callable[[random.Random], Carried]

_HOSTS = ["db-replica", "cache-eu", "gateway", "auth", "billing-api", "search-node", "mq-primary"]
_KNOBS = [
    "maxInflight",
    "retry_budget",
    "poolSize",
    "flush_interval_ms",
    "lease_ttl",
    "shard_count",
    "backoff_cap",
    "hedge_after",
]
_THINGS = ["workers", "segments", "partitions", "rows", "connections", "tenants", "pages", "handles"]


def _hex(rng: random.Random, digits: int) -> str:
    return f"{rng.randrange(16**digits):0{digits}x}"


def _listening(rng: random.Random) -> Carried:
    address = f"{rng.choice(['127.0.0.1', '0.0.0.0', '10.2.7.14'])}:{rng.randrange(2000, 64000)}"
    return rng.choice(["server listening on {}", "bind {} ok, accepting", "Proxy ready at {} (h2c)"]).format(
        address
    ), address


def _knob(rng: random.Random) -> Carried:
    name, value = rng.choice(_KNOBS), rng.randrange(11, 9000)
    fact = rng.choice(["{} = {}", "{}: {}", '"{}": {}', "{}={}"]).format(name, value)
    return rng.choice(["  {}", "{},", "  {}  # was lower before", "effective {} (from env)"]).format(fact), fact


def _commit(rng: random.Random) -> Carried:
    sha = _hex(rng, rng.choice([7, 10, 12]))
    return rng.choice(
        ["{} switch the lease to monotonic time", "bisect: {} is the first bad commit", "HEAD is now at {}"]
    ).format(sha), sha


def _code(rng: random.Random) -> Carried:
    code = rng.choice(
        [
            f"E0{rng.randrange(100, 999)}",
            f"TS{rng.randrange(1000, 9999)}",
            f"CVE-2025-{rng.randrange(1000, 60000)}",
            f"ORA-{rng.randrange(10000, 31000)}",
            f"SQLSTATE {rng.randrange(10, 99)}P{rng.randrange(10, 99)}",
        ]
    )
    return rng.choice(
        [
            "error[{}]: cannot move out of borrowed content",
            "  cause: {} raised by the driver",
            "see {} for the advisory",
            "({}) type mismatch in argument 2",
        ]
    ).format(code), code


def _frame(rng: random.Random) -> Carried:
    place = f"{rng.choice(_HOSTS).replace('-', '_')}/{rng.choice(_KNOBS).lower()}.{rng.choice(['py', 'rs', 'go', 'ts'])}:{rng.randrange(10, 999)}"
    return rng.choice(
        ["    at handle ({})", "thread 'main' panicked at {}", '  File "{}", in run', "goroutine 17 [running]: {}"]
    ).format(place), place


def _size(rng: random.Random) -> Carried:
    fact = rng.choice(
        [
            f"{rng.randrange(120, 980)} MiB",
            f"{rng.randrange(11, 999)}.{rng.randrange(10)} ms",
            f"{rng.randrange(1000, 99000)} {rng.choice(_THINGS)}",
            f"{rng.randrange(11, 96)}.{rng.randrange(1, 9)}%",
        ]
    )
    return rng.choice(
        [
            "peak RSS was {} during the run",
            "p99 settled at {}",
            "the sweep touched {}",
            "coverage of the module: {}",
            "{} left over after compaction",
        ]
    ).format(fact), fact


def _version(rng: random.Random) -> Carried:
    version = (
        f"{rng.randrange(1, 20)}.{rng.randrange(1, 40)}.{rng.randrange(1, 30)}{rng.choice(['', '-rc1', '+sec2', ''])}"
    )
    return rng.choice(
        [
            "needs protoc >= {}",
            "the runner image ships openssl {}",
            "resolved to {} because of a peer constraint",
            "last good release: {}",
        ]
    ).format(version), version


def _row(rng: random.Random) -> Carried:
    identifier = f"{rng.choice(['ord', 'ten', 'inv', 'job'])}_{_hex(rng, 10)}"
    return rng.choice(
        [" {} | stuck    | 3", "| {} | pending | 2026-03-02 |", "skipping {}: duplicate key", "{}\tlocked\tnull"]
    ).format(identifier), identifier


def _url(rng: random.Random) -> Carried:
    url = f"https://{rng.choice(_HOSTS)}.internal.example/{rng.choice(['v1', 'v2', 'hooks'])}/{rng.choice(_THINGS)}?shard={rng.randrange(10, 99)}"
    return rng.choice(["GET {} -> 502", "webhook target {}", "docs moved to {}"]).format(url), url


def _place(rng: random.Random) -> Carried:
    path = f"/{rng.choice(['var/lib', 'etc', 'srv', 'opt'])}/{rng.choice(_HOSTS)}/{rng.choice(_KNOBS)}.{rng.choice(['yaml', 'sock', 'db', 'toml'])}"
    return rng.choice(
        ["reading overrides from {}", "{}: Permission denied", "state file is {}", "lock held on {}"]
    ).format(path), path


def _day(rng: random.Random) -> Carried:
    fact = f"2026-{rng.randrange(4, 12):02}-{rng.randrange(1, 28):02}"
    return rng.choice(["the certificate expires on {}", "freeze begins {} at noon", "retention cutoff: {}"]).format(
        fact
    ), fact


CARRIERS: tuple[Carrier, ...] = (
    _listening,
    _knob,
    _commit,
    _code,
    _frame,
    _size,
    _version,
    _row,
    _url,
    _place,
    _day,
)


def buried(rng: random.Random, names: Names) -> Carried:
    """Return a fact in a line that is like all lines of a package manager or a listing."""
    if rng.random() < 0.5:
        line = names.compiled(1)[0]
        return line, line.strip()
    line = names.found(1)[0]
    return line, line.partition(":")[0] + ":" + line.split(":")[1]


def commanded(rng: random.Random) -> Carried:
    """Return a command with an argument that counts."""
    value = rng.choice(
        [
            f"--shard {rng.randrange(10, 99)}",
            f"--since 2026-0{rng.randrange(1, 9)}-1{rng.randrange(10)}T0{rng.randrange(10)}:30",
            f"REPLAY_SEED={rng.randrange(10**5, 10**6)}",
            f"--region eu-north-{rng.randrange(2, 9)}{rng.choice('abc')}",
            f"-n staging-{_hex(rng, 4)}",
            f"http://127.0.0.1:{rng.randrange(3000, 60000)}/admin/{rng.choice(_THINGS)}",
        ]
    )
    if value.startswith("http"):
        return f"curl -fsS {value}", value
    if "=" in value:
        return f"{value} ./scripts/replay.sh", value
    if value.startswith("-n"):
        return f"kubectl {value} get pods", value
    return f"./scripts/{rng.choice(['backfill', 'inspect', 'drain'])}.sh {value}", value


def measured(rng: random.Random) -> tuple[str, str]:
    """Return two values of one unit."""
    unit = rng.choice(["ms", "MiB", "req/s", "s"])
    first, second = rng.randrange(200, 9000), rng.randrange(20, 199)
    return f"{first} {unit}", f"{second} {unit}"


def _other(rng: random.Random) -> Carried:
    """Return a fact of a shape that is kept for the held-out sessions."""
    number, word = rng.randrange(11, 9999), rng.choice(_HOSTS)
    line, fact = rng.choice(
        [
            ("image registry.example:5000/{}", f"{word}:build-{number}"),
            ("cron entry: {} root run-parts", f"*/{number % 59 + 1} {number % 23} * * {number % 6}"),
            ("the branch is called {}", f"feature/{word}-{number}"),
            ("mode {} needed on the key file", f"0{number % 7}{number % 5}0 {word}.pem"),
            ("fallback stays behind the flag {}", f"enable-{word}-{rng.choice(_THINGS)}"),
            ("constraint {} violated by insert", f"fk_{word.replace('-', '_')}_{number}"),
            ("NodePort range {} is taken", f"{30000 + number}-{31000 + number}"),
            ("kid {} is not in the key set", f"{_hex(rng, 8)}-{_hex(rng, 4)}-{_hex(rng, 12)}"),
            ("interface {} has no carrier", ":".join(_hex(rng, 2) for _ in range(6))),
            ("ask {} for access", f"{word}-team{number}@example.org"),
            ("saldo laut Beleg: {}", f"{number}.{number % 899 + 100},{number % 90 + 10} EUR"),
            ("| {} | yes | no |", f"{word} r{number}"),
            ("waiting for {} to become healthy", f"{word}-{_hex(rng, 5)}-{number}"),
            ("Segmentation fault at address {}", f"0x{_hex(rng, 12)}"),
            ("deadline moved by {}", f"{number} business days"),
            ("exit signal {}", f"SIG{word[:4].upper()} ({number})"),
        ]
    )
    return line.format(fact), fact


OTHER_CARRIERS: tuple[Carrier, ...] = (_other, _other, _commit, _size)
