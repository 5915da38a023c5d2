"""The entry: help and version, exit codes, and one sentence for whatever goes wrong."""

import subprocess
import sys
from collections.abc import Callable
from typing import Final, NoReturn

import click
import pytest

from diglot import __version__
from diglot.cli import main as entry
from diglot.cli.verbs import ps
from diglot.core.errors import LoadFailed
from tests.cli.conftest import Diglot, Outcome
from tests.house.source import within

Fails = Callable[[BaseException], None]

LISTED: Final = "try: main()\nfinally: print(*sys.modules, sep='\\n')"
HEAVY: Final = (
    "diglot.cli.verbs",
    "diglot.store",
    "diglot.app",
    "starlette",
    "httpx2",
    "numpy",
    "xllamacpp",
    "msgspec",
)


def test_it_tells_its_version(diglot: Diglot) -> None:
    assert diglot("--version").out == f"diglot {__version__}\n"


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_no_command(option: str) -> None:
    code = f"import sys; sys.argv = ['diglot', '{option}']\nfrom diglot.cli.main import main\n{LISTED}"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert not [name for name in output.splitlines() if within(name, *HEAVY)]


@pytest.mark.parametrize("verb", entry.VERBS)
def test_each_command_is_there_and_explains_itself(diglot: Diglot, verb: str) -> None:
    assert verb in diglot("-h").out
    outcome = diglot(verb, "-h")
    assert outcome.code == 0
    assert f"Usage: diglot {verb}" in outcome.out


def test_an_unknown_command_is_a_wrong_call(diglot: Diglot) -> None:
    outcome = diglot("fly")
    assert outcome.code == 2
    assert "fly" in outcome.err


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Fails:
    """Make `diglot ps` fail."""

    def with_error(error: BaseException) -> None:
        def fail(_: click.Context) -> NoReturn:
            raise error

        monkeypatch.setattr(ps.command, "invoke", fail)

    return with_error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (LoadFailed("m", reason="too large"), "Error: model 'm' could not be loaded: too large\n"),
        (PermissionError(13, "Permission denied", "/a/file"), "Error: /a/file: Permission denied\n"),
        (KeyError("x"), "Error: KeyError: 'x' (this is a bug; --debug shows where)\n"),
    ],
)
def test_what_goes_wrong_is_one_sentence(diglot: Diglot, fails: Fails, error: Exception, said: str) -> None:
    fails(error)
    assert diglot("ps") == Outcome(1, "", said)


@pytest.mark.parametrize("arguments", [("--debug", "ps"), ("ps", "--debug")])
def test_debug_shows_where(diglot: Diglot, fails: Fails, arguments: tuple[str, ...]) -> None:
    fails(KeyError("x"))
    assert "Traceback" in diglot(*arguments).err


def test_ctrl_c_is_no_error(diglot: Diglot, fails: Fails) -> None:
    fails(KeyboardInterrupt())
    assert diglot("ps") == Outcome(130, "", "\n")


def test_a_reader_that_has_seen_enough_is_no_error_to_tell_of() -> None:
    command = f"{sys.executable} -m diglot settings-page | true"
    ended = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stderr == ""
