"""What `docs/observing.md` says of metrics and of the log is what the server has."""

import logging
import re
from pathlib import Path

import pytest
from prometheus_client import parser

from tests.http.world import World

PAGE = Path("docs/observing.md").read_text(encoding="utf-8")


def listed(heading: str) -> set[str]:
    """Return what is named in the first column of the tables under a heading."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


async def test_every_family_is_listed_and_no_other() -> None:
    world = World()
    await world.get("POST", "/say", b'{"stream": true}')
    world.desk.totals.of("chat:latest").compactions["ok"] += 1
    page = (await world.get("GET", "/metrics")).text
    families = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in parser.text_string_to_metric_families(page)
    }
    assert families == listed("Metrics")


async def test_every_member_of_a_line_is_listed_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = World()
    await world.get("POST", "/say", b'{"stream": true}')
    await world.get("POST", "/say", b"{")
    members = {name for record in caplog.records for name in vars(record).get("fields", ())}
    assert members == listed("A line for each request")
