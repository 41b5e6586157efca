"""The loop of tool-calling agents: the model writes, its calls are carried out, and it reads what they found."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from cotrail.core.actions.generate import Reason
from cotrail.core.calls import Call, numbered
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Prompt, assistant
from cotrail.core.results import Generated
from cotrail.core.system import LimitReached, Part, expect
from cotrail.systems.parts.in_parallel import in_parallel
from cotrail.systems.parts.searching import SearchSettings
from cotrail.systems.tool_agents.tools import Observed, Tools, refused

Told = Sequence[tuple[Call, Observed]]
"""Calls, each with what its tool says."""

MOST_CALLS = 16
"""Calls of one message that are carried out."""

CONTEXT = "tokens of context"
"""The name of the limit of a conversation's length."""


class Way(Struct, frozen=True, kw_only=True):
    """How a model calls tools, and how it is told what they say.

    calls: those in its message; told: the conversation with what the tools say; stop: strings that end a message.
    begins: with what each of its messages begins, which it continues.
    """

    calls: Callable[[Generated], tuple[Call, ...]]
    told: Callable[[Prompt, Told], Prompt]
    stop: tuple[str, ...] = ()
    begins: str = ""


class Bounds(Struct, frozen=True, kw_only=True):
    """Where a loop ends at the latest: messages, searches and tokens of the conversation; None for no bound.

    calls: those of one message that are carried out.
    """

    turns: int
    calls: int = MOST_CALLS
    searches: int | None = None
    tokens: int | None = None

    def reached(self, turns: int, searches: int, tokens: int) -> str:
        """The name of the bound that this reaches; empty where it reaches none."""
        if self.tokens is not None and tokens >= self.tokens:
            return CONTEXT
        if self.searches is not None and searches >= self.searches:
            return "searches"
        return "turns" if turns >= self.turns else ""


class Drawn(Struct, frozen=True, kw_only=True):
    """How messages are drawn; temperature: the run's where None."""

    max_tokens: int
    temperature: float | None = None
    top_p: float = 1.0


class Looped(Struct, frozen=True, kw_only=True):
    """What a loop has come to.

    text: of the last message; tokens: of the last turn's prompt and message. paragraphs: all that tools showed.
    limit: the bound that ended it; empty where the model ended it, or it goes on.
    """

    chat: Prompt
    text: str = ""
    turns: int = 0
    tokens: int = 0
    paragraphs: tuple[Paragraph, ...] = ()
    limit: str = ""


def tool_loop(
    chat: Prompt,
    tools: Tools,
    way: Way,
    bounds: Bounds,
    drawn: Drawn,
    search: SearchSettings,
    shorten: Callable[[Looped], Part[Prompt]] | None = None,
) -> Part[Looped]:
    """Have the model call tools until it calls none, or a bound is reached.

    shorten: the conversation with which the next turn begins, where that isn't the whole one.
    """
    text, paragraphs, turns, searches, tokens, limit = "", tuple[Paragraph, ...](), 0, 0, 0, ""
    try:
        while not limit:
            chat = chat.add(assistant(way.begins)) if way.begins else chat
            written = yield from message(chat, way, drawn)
            text, tokens = written.text, written.prompt_tokens + written.generated_tokens
            calls = numbered(way.calls(written), turns)
            turns += 1
            # Servers refuse a turn without words or calls.
            if text.strip() or calls:
                chat = chat.wrote(text, calls if written.calls else (), written.carried)
            if not calls:
                break
            told = yield from carried_out(calls, tools, search, bounds, yields=max(bounds.turns - turns, 0) + 1)
            chat = way.told(chat, told)
            paragraphs += tuple(paragraph for _, each in told for paragraph in each.paragraphs)
            searches += sum(call.name in tools and tools[call.name].searches for call in calls)
            limit = bounds.reached(turns, searches, tokens)
            if shorten is not None and not limit:
                so_far = Looped(chat=chat, text=text, turns=turns, tokens=tokens, paragraphs=paragraphs)
                chat = yield from shorten(so_far)
    except LimitReached as reached:
        limit = reached.limit
    return Looped(chat=chat, text=text, turns=turns, tokens=tokens, paragraphs=paragraphs, limit=limit)


def message(chat: Prompt, way: Way, drawn: Drawn) -> Part[Generated]:
    """The model's next message."""
    reason = Reason(
        prompt=chat,
        max_tokens=drawn.max_tokens,
        until="stop",
        stop=way.stop,
        temperature=drawn.temperature,
        top_p=drawn.top_p,
    )
    return expect((yield reason), Generated)


def carried_out(
    calls: tuple[Call, ...], tools: Tools, search: SearchSettings, bounds: Bounds, yields: int
) -> Part[Told]:
    """What the tools say that were called, all of them at once; of what can't be carried out, why."""
    observed = yield from in_parallel(_carried_out(call, tools, search, yields) for call in calls[: bounds.calls])
    too_many = Observed((f"At most {bounds.calls} calls are carried out at once; this one wasn't.",))
    return tuple(zip(calls, (*observed, *[too_many] * (len(calls) - len(observed))), strict=True))


def _carried_out(call: Call, tools: Tools, search: SearchSettings, yields: int) -> Part[Observed]:
    if problem := refused(call, tools):
        return Observed((problem,))
    used = tools[call.name]
    return (yield from used.run(call.read(used.arguments), search, yields))
