"""Three ways to compact a conversation, each as its makers do it, on the same engine with the same parameters.

`ours` is the service itself. `as_ollama` is what Ollama 0.34 does: the transcript as JSON items in a fresh prompt,
`create_summary` as the only tool, no schema, one repair, one trim of the oldest fifth. `as_codex` is what Codex does
itself where a server cannot: the instruction behind the conversation, no tools, free text, the oldest items dropped
until it fits. For both, the user's messages stay, as Codex keeps them.

Invariant: a way that fails returns no window, and the conversation is as it was.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import msgspec
from msgspec.structs import replace

from bench.compaction.watching import Watched
from diglot.core.compaction.envelope import Summary
from diglot.core.compaction.plan import closed, plan_of, reference
from diglot.core.compaction.window import is_kept, is_shown_summary, shown
from diglot.core.errors import CompactionFailed, ContextExceeded, NothingGained
from diglot.core.events import Compacted
from diglot.core.items import Item, Message, Reasoning, ToolCall, ToolResult, said
from diglot.core.request import Conversation, Generation, Sampling, ToolChoice, ToolSpec
from diglot.core.result import Choice
from diglot.services.compact import Compact
from diglot.services.envelopes import Envelopes

Window = tuple[Item, ...]
Way = Callable[[Watched, Generation, int], Awaitable[Window | None]]
"""Takes an engine, a request that holds the conversation, and how many tokens an answer may have."""

_OLLAMA_TASK = (
    "Summarise a conversation for another coding agent, which goes on with it. Keep its goal, decisions, constraints, "
    "the state of the repository, changed files, test results, failures, work under way and next steps. Each user "
    "message below is one item of the transcript, as JSON. Name in retain_item_ids the items that cannot be said in "
    "other words. Calls and results are the state of a run: do not invent or change any. Call create_summary once."
)
_CODEX_TASK = (
    "The context is full: write a handover for another language model that will resume the task. Say what was "
    "done and decided, which constraints and preferences of the user hold, what remains to be done, and the data, "
    "examples and references that are needed to go on. Be short and structured."
)
_CODEX_PREFIX = "Another language model worked on this task before and left this summary of what it did:\n"
_TOOL = ToolSpec(
    "create_summary",
    "Hand over the summary.",
    {
        "type": "object",
        "properties": {
            "summary": {"type": "string"},
            "retain_item_ids": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["summary", "retain_item_ids"],
        "additionalProperties": False,
    },
)
_ATTEMPTS = 3
_FIFTH = 5


class NoSeal:
    """Seals nothing: the plain form is what is measured."""

    def knows(self, text: str) -> bool:  # noqa: ARG002  the port gives it
        """Whether the text was sealed."""
        return False

    def close(self, text: str) -> str:
        """Return the text."""
        return text

    def open(self, sealed: str) -> str:
        """Return the text."""
        return sealed


async def ours(engine: Watched, request: Generation, answer: int) -> Window | None:  # noqa: ARG001  it has its own
    """Compact as the server does."""
    envelopes = Envelopes(NoSeal())
    try:
        events = [event async for event in Compact(envelopes)(engine, request)]
    except (CompactionFailed, NothingGained):
        return None
    (done,) = (event for event in events if isinstance(event, Compacted))
    users = set(done.kept)
    kept = tuple(item for item in _items(request) if is_kept(item) and (not _is_user(item) or item in users))
    return (*kept, *shown(done.item.payload, envelopes.open(done.item)))


async def as_ollama(engine: Watched, request: Generation, answer: int) -> Window | None:
    """Compact as Ollama does."""
    items, gone, problem, trimmed, repaired = _items(request), 0, "", False, False
    forced = plan_of(items).forced
    left = tuple(enumerate(items))
    for _ in range(_ATTEMPTS):
        try:
            choice = await _asked(engine, _ollama_question(request, left, gone, problem), answer)
        except ContextExceeded:
            fewer = left if trimmed else _without_a_fifth(items, left, forced)
            if len(fewer) == len(left):
                return None
            gone, left, trimmed = gone + len(left) - len(fewer), fewer, True
            continue
        read = _ollama_answer(choice, left)
        if not isinstance(read, str):
            summary, chosen = read
            retained = tuple(items[index] for index in sorted(closed(items, {*chosen, *forced})))
            note = f"Compaction warning: {gone} older items were left out.\n\n" if gone else ""
            return (*filter(is_kept, items), *shown(summary, Summary(note + summary, retained)))
        if repaired:
            return None
        problem, repaired = read, True
    return None


def _ollama_question(request: Generation, left: tuple[tuple[int, Item], ...], gone: int, problem: str) -> Generation:
    task = _OLLAMA_TASK
    if gone:
        task += f" {gone} older items were left out because the context was too small; say so in the summary."
    if problem:
        task += f" The last answer could not be used: {problem}."
    tools = json.dumps({"tools": [{"name": tool.name, "description": tool.description} for tool in request.tools]})
    told = (said("user", json.dumps(_told(index, item), ensure_ascii=False)) for index, item in left)
    return replace(request, prompt=Conversation((said("system", task), said("user", tools), *told)), tools=(_TOOL,))


def _told(index: int, item: Item) -> dict[str, object]:
    """Return an item as JSON says it."""
    told: dict[str, object] = {"ref": reference(index), "type": "message"}
    match item:
        case Message():
            told["message"] = {"role": item.role, "content": item.text}
        case Reasoning():
            told |= {"type": "reasoning", "message": {"role": "assistant", "thinking": item.text}}
        case ToolCall():
            call = {"id": item.call_id, "function": {"name": item.name, "arguments": item.arguments}}
            told |= {"type": "function_call", "message": {"role": "assistant", "tool_calls": [call]}}
        case ToolResult():
            result = {"role": "tool", "content": item.text, "tool_call_id": item.call_id}
            told |= {"type": "function_call_output", "message": result}
        case _:
            pass
    return told


def _ollama_answer(choice: Choice, left: tuple[tuple[int, Item], ...]) -> tuple[str, set[int]] | str:
    """Return the summary and the chosen items, or what is wrong with the answer."""
    if len(choice.calls) != 1 or choice.calls[0].name != _TOOL.name:
        return f"one call of create_summary was expected, not {len(choice.calls)}"
    try:
        value = json.loads(choice.calls[0].arguments)
        summary, names = value["summary"].strip(), value["retain_item_ids"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return "its arguments are not what the tool takes"
    known = {reference(index): index for index, _ in left}
    if not summary or not isinstance(names, list) or not all(isinstance(each, str) and each in known for each in names):
        return "its summary is empty or it names items that are not there"
    return summary, {known[name] for name in names}


def _without_a_fifth(
    items: tuple[Item, ...], left: tuple[tuple[int, Item], ...], forced: tuple[int, ...]
) -> tuple[tuple[int, Item], ...]:
    """Leave out the oldest fifth of what may go, calls with their results."""
    sizes = {index: len(json.dumps(_told(index, item), ensure_ascii=False).encode()) for index, item in left}
    target, gone = sum(sizes.values()) / _FIFTH, set[int]()
    for index, item in left[:-1]:
        if sum(sizes[each] for each in gone) >= target:
            break
        if not is_kept(item) and not is_shown_summary(item):
            group = closed(items, {index})
            gone |= set() if group & set(forced) else set(group)
    return tuple((index, item) for index, item in left if index not in gone)


async def as_codex(engine: Watched, request: Generation, answer: int) -> Window | None:
    """Compact as Codex does by itself."""
    items = _items(request)
    question = replace(request, tools=(), prompt=Conversation((*items, said("user", _CODEX_TASK))))
    first = next((index for index, item in enumerate(items) if not is_kept(item)), len(items))
    low, high = 0, len(items) - first
    while low < high:  # Codex tries one by one; the tries in between are not charged to it.
        middle = (low + high) // 2
        tried = _without_oldest(question, first, middle)
        fits = await engine.count(tried) + answer <= engine.window
        low, high = (low, middle) if fits else (middle + 1, high)
    try:
        choice = await _asked(engine, _without_oldest(question, first, low), answer)
    except ContextExceeded:
        return None
    if not choice.text.strip() or choice.calls:
        return None
    return (*filter(is_kept, items), said("user", _CODEX_PREFIX + choice.text))


def _without_oldest(question: Generation, first: int, count: int) -> Generation:
    items = _items(question)
    gone = closed(items, range(first, first + count)) if count else frozenset()
    return replace(question, prompt=Conversation(tuple(each for at, each in enumerate(items) if at not in gone)))


async def _asked(engine: Watched, question: Generation, answer: int) -> Choice:
    sampling = Sampling(temperature=0.0, seed=0, max_tokens=answer)
    async for _ in engine.generate(replace(question, sampling=sampling, tool_choice=ToolChoice())):
        pass
    return engine.answers[-1].result.choices[0]


def _items(request: Generation) -> tuple[Item, ...]:
    if not isinstance(request.prompt, Conversation):
        raise TypeError(request.prompt)
    return request.prompt.items


def _is_user(item: Item) -> bool:
    return isinstance(item, Message) and item.role == "user"


def is_answer(choice: Choice) -> bool:
    """Whether an answer of ours is valid, judged here anew."""
    try:
        value = msgspec.json.decode(choice.text, type=dict[str, str | list[str]])
    except msgspec.MsgspecError:
        return False
    return bool(str(value.get("summary", "")).strip()) and isinstance(value.get("retain_item_ids"), list)


WAYS: dict[str, Way] = {"Diglot": ours, "as Ollama": as_ollama, "as Codex": as_codex}
