"""Every setting is a flag, and the page of settings is true."""

from pathlib import Path
from typing import Final

import msgspec
import pytest

from diglot.cli.flags import flags
from diglot.cli.verbs import serve
from diglot.cli.verbs.settings_page import page
from diglot.settings import Settings
from tests.cli.conftest import Diglot
from tests.house.source import ROOT

NAMES: Final = [field.name for field in msgspec.structs.fields(Settings)]


@pytest.mark.parametrize("name", NAMES)
def test_each_setting_is_a_flag_with_words(name: str) -> None:
    option = next(each for each in serve.command.params if each.name == name)
    assert option.opts == ["--" + name.replace("_", "-")]
    assert next(flag.told for flag in flags() if flag.name == name)


def test_flags_become_settings(diglot: Diglot, in_force: list[Settings], home: Path) -> None:
    given = [
        "--port",
        "0",
        "--slots",
        "2",
        "--keep-alive",
        "-1",
        "--models",
        "elsewhere",
        "--origins",
        "a",
        "--origins",
        "b",
        "--engine",
        "scripted",
    ]
    assert diglot("serve", *given).code == 0
    [settings] = in_force
    assert (settings.slots, settings.keep_alive, settings.origins) == (2, -1.0, ("a", "b"))
    assert (settings.models, settings.home, settings.engine) == (Path("elsewhere"), home, "scripted")


def test_a_flag_that_is_not_given_leaves_the_setting_to_others(
    diglot: Diglot, in_force: list[Settings], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    (home / "config.toml").write_text('slots = 7\nqueue = 8\norigins = ["x"]\n')
    monkeypatch.setenv("DIGLOT_QUEUE", "9")
    assert diglot("serve", "--port", "0", "--engine", "scripted").code == 0
    assert (in_force[0].slots, in_force[0].queue, in_force[0].origins) == (7, 9, ("x",))


@pytest.mark.parametrize(
    ("arguments", "environment", "named"),
    [
        (("--slots", "many"), "", "--slots"),
        (("--engine", "steam"), "", "--engine"),
        ((), "many", "slots in the environment"),
    ],
)
def test_a_wrong_value_is_named(
    diglot: Diglot, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], environment: str, named: str
) -> None:
    monkeypatch.setenv("DIGLOT_SLOTS", environment)
    outcome = diglot("serve", *arguments)
    assert outcome.code == 2
    assert named in outcome.err


def test_the_page_of_settings_is_up_to_date(diglot: Diglot) -> None:
    assert (ROOT / "docs/settings.md").read_text("utf-8") == page() == diglot("settings-page").out
