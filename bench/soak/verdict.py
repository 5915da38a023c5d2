"""The verdict: what a run shows, printed, and whether it is well.

Well is: every request ended in an answer, in an error that the mix explains, or by our own leaving; no more were hurt by
killed engines than can have been; and nothing that the server holds between requests grew. Times are printed and
judged by nobody: they are the machine's as much as the server's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from bench.soak.running import CLIENTS, EXPLAINED, Tally
from bench.soak.server import Quiet

_MB = 1e6
_MEMORY = 12 * _MB
"""Bytes that the server may hold more at the end than after its first stretch: what an allocator does by itself."""
_ENGINES = 1.0
"""Share that the engines may hold more: one that was just killed begins anew, one that lives keeps what it has seen."""
_OBJECTS = 0.1


def faults(tally: Tally, quiets: Sequence[Quiet], log: str) -> Iterator[str]:
    """Yield what is not well."""
    for surprise, times in tally.surprises.items():
        yield f"{times} x {surprise}"
    hurt = sum(tally.refusals[kind] for kind in EXPLAINED)
    if hurt > tally.kills * CLIENTS:
        yield f"{hurt} requests were hurt by {tally.kills} kills, more than {CLIENTS} by each"
    if traces := log.count("Traceback"):
        yield f"the log holds {traces} tracebacks"
    first, last = quiets[0], quiets[-1]
    early = quiets[: -max(1, len(quiets) // 3)] or quiets  # On a slow machine some things are first done late.
    for name in ("descriptors", "tasks", "generators", "children", "zombies"):
        most = max(getattr(each, name) for each in early)
        if getattr(last, name) > most:
            yield f"{name} grew from {most} to {getattr(last, name)}"
    if last.resident > first.resident + _MEMORY:
        yield f"the server's memory grew from {first.resident / _MB:.1f} to {last.resident / _MB:.1f} MB"
    if last.engines > first.engines * (1 + _ENGINES):
        yield f"the engines' memory grew from {first.engines / _MB:.0f} to {last.engines / _MB:.0f} MB"
    if last.objects > first.objects * (1 + _OBJECTS):
        yield f"objects grew from {first.objects} to {last.objects}"


def report(tally: Tally, quiets: Sequence[Quiet], log: str) -> Iterator[str]:
    """Yield the lines of the print."""
    cards: dict[str, dict[str, int]] = defaultdict(dict)
    for (card, way), times in tally.ways.items():
        cards[card][way] = times
    ways = ("answered", "refused", "left", "lost")
    yield f"{'':42}" + "".join(f"{way:>10}" for way in ways) + f"{'slowest s':>12}"
    for card, by_way in sorted(cards.items()):
        yield f"{card:42}" + "".join(f"{by_way.get(way, 0):>10}" for way in ways) + f"{tally.slowest[card]:>12.1f}"
    yield f"{'all':42}" + "".join(f"{sum(each.get(way, 0) for each in cards.values()):>10}" for way in ways)
    yield f"requests {tally.requests}, engines killed {tally.kills}, tracebacks in the log {log.count('Traceback')}"
    told = ", ".join(f"{kind} {times}" for kind, times in sorted(tally.refusals.items())) or "none"
    yield f"refusals by kind: {told}"
    yield ""
    names = ("descriptors", "tasks", "generators", "objects", "threads", "children", "zombies")
    yield f"{'second':>8}{'requests':>10}{'server MB':>11}{'engines MB':>12}" + "".join(f"{name:>13}" for name in names)
    for each in quiets:
        memory = f"{each.resident / _MB:>11.1f}{each.engines / _MB:>12.0f}"
        yield f"{each.at:>8.0f}{each.requests:>10}{memory}" + "".join(f"{getattr(each, name):>13}" for name in names)
    server = slope([(each.at, each.resident / 1e3) for each in quiets])
    engines = slope([(each.at, each.engines / 1e3) for each in quiets])
    yield f"memory slope after the first stretch: server {server:+.0f} kB/min, engines {engines:+.0f} kB/min"
    yield f"{'loop lag, from inside:':33}{_spread([lag for each in quiets for lag in each.lags])}"
    for path, seconds in tally.looks.items():
        yield f"{f'GET {path}, from outside:':33}{_spread(seconds)}"


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the line that fits best, for each minute; 0 for fewer than two points."""
    if len(points) < 2:
        return 0.0
    middle = sum(at for at, _ in points) / len(points)
    spread = sum((at - middle) ** 2 for at, _ in points)
    return 60 * sum((at - middle) * value for at, value in points) / spread if spread else 0.0


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return "not measured"
    ordered = sorted(each * 1000 for each in seconds)
    half, most = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    return f"median {half:.1f} ms, 99 % below {most:.1f} ms, at most {ordered[-1]:.1f} ms, {len(ordered)} times"
