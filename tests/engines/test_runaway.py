"""Models whose templates do harm: what they reach for, take or never finish ends with their engine, and soon."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from diglot.core.errors import EngineCrashed, LoadFailed
from diglot.core.model import Model
from diglot.engines.llamacpp import loader as loading
from diglot.engines.llamacpp.loader import LlamaLoader
from diglot.store.gguf import read_header
from tests.engines.asking import CountingIds, asked, result_of
from tests.engines.conftest import LIMITS, WINDOW, nothing
from tests.engines.test_llamacpp import nothing_left
from tests.services.world import until

pytestmark = pytest.mark.timeout(180)
PLAIN: Final = "{% for message in messages %}{{ message.content }}{% endfor %}"
LOOP: Final = "{% for a in range(1000) %}"
ENDLESS: Final = LOOP * 4 + "{% endfor %}" * 4 + PLAIN
GREEDY: Final = "{% for a in range(1000000000) %}{% endfor %}" + PLAIN


def with_template(model: Model, template: str, folder: Path) -> Model:
    """Return the model with another template, which fills the place of the old one."""
    old = read_header(model.weights).fields["tokenizer.chat_template"]
    assert isinstance(old, str)
    filled = template.encode() + b"{#" + b" " * (len(old.encode()) - len(template.encode()) - 4) + b"#}"
    weights = folder / "hostile.gguf"
    shutil.copyfile(model.weights, weights)
    with weights.open("r+b") as file:
        head = file.read(16 << 20)
        assert head.count(old.encode()) == 1
        file.seek(head.index(old.encode()))
        file.write(filled)
    assert read_header(weights).fields["tokenizer.chat_template"] == filled.decode()
    return replace(model, weights=weights)


def loader(patience: float = 60.0) -> LlamaLoader:
    return LlamaLoader(ids=CountingIds(), limits=LIMITS, patience=patience)


@pytest.mark.parametrize(
    "reach",
    [
        "{{ cycler.__init__.__globals__.os.popen('touch %s').read() }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ lipsum.__globals__['os'].system('touch %s') }}",
        "{{ self.__init__.__globals__.__builtins__.open('%s', 'w') }}",
        "{%% include '/etc/passwd' %%}",
    ],
)
async def test_a_template_that_reaches_for_the_machine_gets_nothing(
    chat_model: Model, reach: str, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    template = reach % mark if "%s" in reach else reach.replace("%%", "%")
    hostile = with_template(chat_model, template + PLAIN, tmp_path)
    async with nothing_left():
        with pytest.raises(LoadFailed):
            await loader().load(hostile, WINDOW, nothing)
    assert not mark.exists()


async def test_a_template_that_takes_memory_without_end_ends_its_engine(
    chat_model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_CEILING_SLACK", 0)
    hostile = with_template(chat_model, GREEDY, tmp_path)
    async with nothing_left():
        with pytest.raises(LoadFailed, match=r"took more than .* of memory"):
            await loader().load(hostile, WINDOW, nothing)


async def test_a_template_that_never_ends_ends_its_engine(chat_model: Model, tmp_path: Path) -> None:
    hostile = with_template(chat_model, ENDLESS, tmp_path)
    async with nothing_left():
        with pytest.raises(LoadFailed, match="computed for 8 seconds and did not get on"):
            await loader(patience=2.0).load(hostile, WINDOW, nothing)


async def test_an_engine_that_takes_too_much_later_is_ended_too(chat_model: Model) -> None:
    async with nothing_left():
        engine = await loader().load(chat_model, WINDOW, nothing)
        engine._child._ceiling = 1  # noqa: SLF001  as if it had grown above it
        await until(lambda: not engine.alive)
        with pytest.raises(EngineCrashed, match="memory"):
            await result_of(engine.generate(asked("Say hello.")))
        await engine.close()
