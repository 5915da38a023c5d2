"""Settings come from four places in their order, and a wrong one is named with the place it came from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import platformdirs
import pytest

from diglot.settings import Settings, SettingsError, load_settings

Load = Callable[..., Settings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load with flags, environment and the text of config.toml, in a home of its own."""

    def made(flags: dict[str, Any] | None = None, config: str = "", **environ: str) -> Settings:
        (tmp_path / "config.toml").write_text(config, "utf-8")
        return load_settings(flags, {"DIGLOT_HOME": str(tmp_path), **environ})

    return made


def test_a_default_gives_way_to_the_file_the_file_to_the_environment_and_that_to_a_flag(load: Load) -> None:
    assert load().slots == 4
    assert load(config="slots = 5").slots == 5
    assert load(config="slots = 5", DIGLOT_SLOTS="6").slots == 6
    assert load({"slots": 7}, config="slots = 5", DIGLOT_SLOTS="6").slots == 7


def test_a_flag_that_was_not_given_and_an_empty_variable_say_nothing(load: Load) -> None:
    settings = load({"slots": None}, config="slots = 5", DIGLOT_SLOTS="", DIGLOT_ORIGINS="")
    assert (settings.slots, settings.origins) == (5, ())


def test_each_place_has_its_form_of_a_list(load: Load) -> None:
    assert load(config='origins = ["a", "b"]').origins == ("a", "b")
    assert load(DIGLOT_ORIGINS="a, b,,").origins == ("a", "b")
    assert load({"origins": ("a", "b")}).origins == ("a", "b")


@pytest.mark.parametrize(("text", "value"), [("true", True), ("1", True), ("false", False), ("0", False)])
def test_a_switch_is_read_from_the_environment(load: Load, text: str, value: bool) -> None:  # noqa: FBT001
    assert load(DIGLOT_SEALED=text).sealed is value


def test_the_home_of_a_flag_goes_before_that_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("port = 1", "utf-8")
    settings = load_settings({"home": tmp_path}, {"DIGLOT_HOME": "/nowhere"})
    assert (settings.home, settings.port) == (tmp_path, 1)


def test_without_a_home_the_machine_says_where_it_is() -> None:
    assert load_settings({}, {}).home == platformdirs.user_data_path("diglot").absolute()


def test_a_tilde_is_the_users_folder_wherever_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "d").mkdir()
    (tmp_path / "d/config.toml").write_text('script = "~/s.toml"', "utf-8")
    settings = load_settings({"models": Path("~/m")}, {"DIGLOT_HOME": "~/d", "DIGLOT_LLAMA_SERVER": "~/l"})
    assert (settings.home, settings.models) == (tmp_path / "d", tmp_path / "m")
    assert (settings.script, settings.llama_server) == (tmp_path / "s.toml", tmp_path / "l")


def test_a_home_that_is_relative_is_meant_from_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings({}, {"DIGLOT_HOME": "x"}).home == tmp_path / "x"


def test_models_and_state_lie_in_the_home_unless_said_otherwise(load: Load, tmp_path: Path) -> None:
    assert (load().model_folder, load().state_folder) == (tmp_path / "models", tmp_path / "state")
    assert load({"models": Path("/m")}).model_folder == Path("/m")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "-1"),
        ("port", "65536"),
        ("port", "http"),
        ("slots", "0"),
        ("slots", "1.5"),
        ("queue", "-1"),
        ("memory", "-1"),
        ("cache", "-1"),
        ("window", "-1"),
        ("threads", "-1"),
        ("max_inputs", "0"),
        ("max_body", "0"),
        ("body_timeout", "0"),
        ("body_timeout", "inf"),
        ("heartbeat", "0"),
        ("heartbeat", "nan"),
        ("drain", "-1"),
        ("keep_alive", "nan"),
        ("response_age", "-1"),
        ("response_size", "-1"),
        ("engine", "steam"),
        ("log", "loud"),
        ("sealed", "perhaps"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name_and_place(load: Load, name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^{name} in the environment: "):
        load(**{f"DIGLOT_{name.upper()}": value})


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("slots = 0", "slots in config.toml: "),
        ('origins = "x"', "origins in config.toml: "),
        ("models = 5", "models in config.toml: "),
        ("slot = 1", "slot in config.toml is no setting"),
        ("[server]\nslots = 1", "server in config.toml is no setting"),
        ('home = "/x"', "home in config.toml cannot be"),
        ("slots = ", "config.toml cannot be read: "),
    ],
)
def test_what_is_wrong_in_the_file_is_named(load: Load, config: str, told: str) -> None:
    with pytest.raises(SettingsError, match=f"^{told}"):
        load(config=config)


def test_a_file_that_is_no_text_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"config\.toml cannot be read"):
        load_settings({}, {"DIGLOT_HOME": str(tmp_path)})


def test_a_flag_that_is_no_setting_is_refused(load: Load) -> None:
    with pytest.raises(SettingsError, match=r"^speed in the command line is no setting"):
        load({"speed": 1})


@pytest.mark.parametrize("value", ["-1", "-0.5", "0"])
def test_a_model_may_stay_for_ever_or_not_at_all(load: Load, value: str) -> None:
    assert load(DIGLOT_KEEP_ALIVE=value).keep_alive == float(value)


def test_a_secret_is_not_told_in_an_error(load: Load) -> None:
    with pytest.raises(SettingsError) as raised:
        load(config="key = 12345")
    assert "12345" not in str(raised.value)


def test_every_setting_is_described() -> None:
    for field in msgspec.structs.fields(Settings):
        assert any(isinstance(each, msgspec.Meta) and each.description for each in field.type.__metadata__), field.name


def test_settings_do_not_change() -> None:
    with pytest.raises(AttributeError):
        load_settings({}, {}).slots = 2  # type: ignore[misc]
