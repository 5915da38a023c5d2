"""The house keeps its laws, and each law is seen to be broken by a sample."""

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.house import laws
from tests.house.source import Source, sources

LONG: Final = "def long() -> None:\n" + "    pass\n" * laws.LONGEST_FUNCTION

Law = Callable[[Source], Iterator[str]]

SAMPLES: Final[dict[Law, list[str]]] = {
    laws.is_described: ["x = 1\n"],
    laws.is_short: ["x = 1\n" * 400, LONG],
    laws.catches_what_it_knows: [
        "try: f()\nexcept: pass",
        "try: f()\nexcept Exception: pass",
        "try: f()\nexcept (OSError, builtins.BaseException): pass",
        "with contextlib.suppress(Exception): f()",
    ],
    laws.leaves_the_environment: [
        "x = os.environ['HOME']",
        "x = os.getenv('HOME')",
        "from os import environ",
        "@click.option('--port', envvar='PORT')\ndef f(port): ...",
    ],
    laws.keeps_no_state: [
        "seen = {}",
        "seen: dict[str, int] = {'a': 1}",
        "SEEN: Final[dict[str, int]] = {}",
        "SEEN: Final = collections.deque()",
        "def f():\n    global seen",
    ],
    laws.is_well_named: ["class ModelManager: ...", "class StreamHandler: ...", "def make_helper(): ..."],
    laws.names_its_arguments: ["def f(a, b, c, d): ...", "class A:\n    async def f(self, a, b, c, d): ..."],
    laws.bounds_what_it_keeps: [
        "q = asyncio.Queue()",
        "q = queue.SimpleQueue()",
        "q = Queue(maxsize=0)",
        "@functools.lru_cache(maxsize=None)\ndef f(): ...",
        "from functools import cache",
        "@functools.cache\ndef f(): ...",
    ],
    laws.writes_plainly: ["# so \N{EM DASH} it is"],
    laws.waits_for_state: ["time.sleep(0.1)", "async def f():\n    await asyncio.sleep(seconds)"],
}
WELL_MADE: Final = '''"""A module."""

TABLE: Final = {"a": 1}
NAMES = ("a", "b")
queue = asyncio.Queue(maxsize=8)

class HostError(Exception):
    def __exit__(self, kind, value, trace): ...

@functools.lru_cache(maxsize=16)
def base_url(host, port, *, path): ...

async def app(scope, receive, send):
    try:
        await asyncio.sleep(0)
    except (OSError, ValueError):
        raise
    except BaseException:
        await tidy()
        raise
    finally:
        with suppress(KeyError):
            os.path.join("a", "b")
'''


EVERYWHERE: Final = ("src", "tests", "tools", "bench")
WHERE: Final[dict[Law, tuple[str, ...]]] = {
    laws.is_described: EVERYWHERE,
    laws.is_short: EVERYWHERE,
    laws.is_well_named: EVERYWHERE,
    laws.writes_plainly: EVERYWHERE,
    laws.waits_for_state: ("tests",),
}
each_law = pytest.mark.parametrize("law", SAMPLES, ids=lambda law: law.__name__)


@each_law
def test_the_house_keeps_the_law(law: Law) -> None:
    files = sources(*WHERE.get(law, ("src",)))
    found = [f"{source.path}:{wrong}" for source in files for wrong in law(source)]
    assert not found, "\n".join(found)


@each_law
def test_each_sample_breaks_the_law(law: Law) -> None:
    unseen = [sample for sample in SAMPLES[law] if not list(law(Source("src/diglot/a.py", sample)))]
    assert not unseen


@each_law
def test_a_well_made_module_keeps_the_law(law: Law) -> None:
    assert not list(law(Source("src/diglot/a.py", WELL_MADE)))


def test_a_border_may_catch_everything() -> None:
    caught = Source(laws.BORDERS[0], "try: f()\nexcept Exception: pass")
    assert not list(laws.catches_what_it_knows(caught))
