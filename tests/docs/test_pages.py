"""What the pages name is there: links, make's targets, commands, their options, settings."""

import re
from typing import Final

import click
import pytest

from diglot.cli.main import VERBS, diglot
from tests.docs.pages import PAGES, ROOT, blocks_of, links_of, text_of

TARGETS: Final = frozenset(re.findall(r"^(\w+):", text_of("Makefile"), re.MULTILINE))
CODE: Final = re.compile(r"`([^`\n]+)`")

each_page = pytest.mark.parametrize("page", PAGES)


def said(page: str) -> list[str]:
    """Return what a page sets as code: commands of blocks, and code within sentences."""
    commands = [line for block in blocks_of(page) if block.language == "console" for line in block.text.splitlines()]
    return [*commands, *CODE.findall(text_of(page))]


def options() -> frozenset[str]:
    """Return every option of every command."""
    context = click.Context(diglot)
    commands = [diglot, *(diglot.get_command(context, verb) for verb in VERBS)]
    names = {
        name
        for command in commands
        if command
        for option in command.params
        for name in (*option.opts, *option.secondary_opts)
    }
    return frozenset(names | {"--help", "-h"})


@each_page
def test_links_lead_somewhere(page: str) -> None:
    gone = [target for target in links_of(page) if not (ROOT / page).parent.joinpath(target).exists()]
    assert not gone


@each_page
def test_make_can_make_what_a_page_tells_to_make(page: str) -> None:
    told = {target for code in said(page) for target in re.findall(r"^make (\w+)", code)}
    assert told <= TARGETS


@each_page
def test_commands_that_a_page_names_exist(page: str) -> None:
    told = {verb for code in said(page) for verb in re.findall(r"(?:^|/)diglot ([a-z][a-z-]*)", code)}
    assert told <= {*VERBS, "settings-page"}


def test_options_that_the_readme_names_exist() -> None:
    told = {
        option
        for page in ("README.md", "SECURITY.md")
        for code in said(page)
        for option in re.findall(r"^--[a-z-]+", code)
    }
    assert told
    assert told <= options()


@each_page
def test_a_page_says_what_it_is_first(page: str) -> None:
    assert text_of(page).startswith("# ")


@each_page
def test_a_page_does_without_em_dashes(page: str) -> None:
    assert "\N{EM DASH}" not in text_of(page)


def test_every_decision_is_in_the_list() -> None:
    pages = {page.removeprefix("docs/decisions/") for page in PAGES if re.match(r"docs/decisions/\d", page)}
    assert set(links_of("docs/decisions/README.md")) == pages


def test_decisions_are_numbered_once() -> None:
    numbers = [page[len("docs/decisions/") :][:4] for page in PAGES if re.match(r"docs/decisions/\d", page)]
    assert sorted(set(numbers)) == sorted(numbers)
