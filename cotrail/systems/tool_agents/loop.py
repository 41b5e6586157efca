"""The loop of tool-calling agents: the model writes, its calls are carried out, and it reads what they found."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import gt
from typing import Literal

import msgspec
from msgspec import Struct

from cotrail.core.actions.generate import Reason
from cotrail.core.calls import Call, Tool, numbered, split_calls
from cotrail.core.demonstrations import Shots
from cotrail.core.generation import Capability
from cotrail.core.prompts import Piece, Prompt, Written, assistant, tool
from cotrail.core.questions import Paragraph
from cotrail.core.results import Generated
from cotrail.core.system import Part, expect
from cotrail.systems.parts.prompting import worded
from cotrail.systems.parts.rules import Limited, StepBound
from cotrail.systems.parts.searching import SearchSettings
from cotrail.systems.parts.steps import going_on, in_parallel
from cotrail.systems.tool_agents.tools import Observed, Tools, refused

Results = Sequence[tuple[Call, Observed]]
"""Calls, each with what its tool says."""

MOST_CALLS = 16
"""Calls of one message that are carried out."""

CONTEXT = "tokens of context"
"""The name of the limit of a conversation's length."""


class Way(Struct, frozen=True, kw_only=True):
    """How a model calls tools, and how it receives what they say.

    calls: those in its message; append: adds what the tools say to a conversation; stop: strings that end a message.
    begins: with what each of its messages begins, which it continues.
    """

    calls: Callable[[Generated], tuple[Call, ...]]
    append: Callable[[Prompt, Results], Prompt]
    stop: tuple[str, ...] = ()
    begins: str = ""


class Bounds(Struct, frozen=True, kw_only=True):
    """Where a loop ends at the latest: messages, searches and tokens of the conversation; None for no bound.

    calls: those of one message that are carried out. prompt: tokens of a prompt beyond which nothing that is written to
        it counts, but for the first one; so the length is known with all that tools said.
    """

    turns: int
    calls: int = MOST_CALLS
    searches: int | None = None
    tokens: int | None = None
    prompt: int | None = None

    def reached(self, turns: int, searches: int, tokens: int) -> str:
        """The name of the bound that this reaches; empty where it reaches none."""
        if self.tokens is not None and tokens >= self.tokens:
            return CONTEXT
        if self.searches is not None and searches >= self.searches:
            return "searches"
        return "turns" if turns >= self.turns else ""

    def is_too_long(self, prompt_tokens: int, turns: int) -> bool:
        """Return whether what was written to a prompt of so many tokens, after so many turns, doesn't count."""
        return self.prompt is not None and turns > 0 and prompt_tokens > self.prompt


class Drawn(Struct, frozen=True, kw_only=True):
    """How messages are drawn; temperature: the run's where None."""

    max_tokens: int
    temperature: float | None = None
    top_p: float = 1.0


class Looped(Struct, frozen=True, kw_only=True):
    """What a loop has come to.

    text: of the last message; tokens: of the last turn's prompt and message. paragraphs: all that tools showed.
    limit: the bound that ended it; empty where the model ended it, or it continues.
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
    text, paragraphs, turns, searches, tokens = "", tuple[Paragraph, ...](), 0, 0, 0
    calls: tuple[Call, ...] = ()
    observed: dict[int, Observed] = {}
    with Limited() as end:
        while not end.limit:
            chat = chat.add(assistant(way.begins)) if way.begins else chat
            written = yield from message(chat, way, drawn)
            if bounds.is_too_long(written.prompt_tokens, turns):
                end.limit = CONTEXT
                break
            text, tokens = written.text, written.prompt_tokens + written.generated_tokens
            calls, observed = numbered(way.calls(written), turns), {}
            turns += 1
            # Servers refuse a turn without words or calls.
            if text.strip() or calls:
                chat = chat.wrote(text, calls if written.calls else (), written.carried)
            if not calls:
                break
            yields = max(bounds.turns - turns, 0) + 1
            running = (_carried_out(call, tools, search, yields) for call in calls[: bounds.calls])
            yield from in_parallel(running, observed)
            chat = way.append(chat, told_of(calls, observed, bounds))
            paragraphs += shown_by(observed)
            searches += sum(call.name in tools and tools[call.name].searches for call in calls)
            calls = ()
            end.limit = bounds.reached(turns, searches, tokens)
            if shorten is not None and not end.limit:
                so_far = Looped(chat=chat, text=text, turns=turns, tokens=tokens, paragraphs=paragraphs)
                chat = yield from shorten(so_far)
    # Servers refuse a conversation in which a call has no answer.
    if calls:
        chat = way.append(chat, told_of(calls, observed, bounds))
        paragraphs += shown_by(observed)
    return Looped(chat=chat, text=text, turns=turns, tokens=tokens, paragraphs=paragraphs, limit=end.limit)


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


def told_of(calls: tuple[Call, ...], observed: Mapping[int, Observed], bounds: Bounds) -> Results:
    """Each call with what its tool says, or why it wasn't carried out: it was one too many, or a budget was used up."""
    too_many = f"At most {bounds.calls} calls are carried out at once; this one wasn't."
    return tuple(
        (call, observed.get(place, Observed((too_many if place >= bounds.calls else "Not carried out: limit.",))))
        for place, call in enumerate(calls)
    )


def shown_by(observed: Mapping[int, Observed]) -> tuple[Paragraph, ...]:
    """The paragraphs that tools showed, in the order of their calls."""
    return tuple(paragraph for place in sorted(observed) for paragraph in observed[place].paragraphs)


def _carried_out(call: Call, tools: Tools, search: SearchSettings, yields: int) -> Part[Observed]:
    if problem := refused(call, tools):
        return Observed((problem,))
    used = tools[call.name]
    return (yield from used.run(call.read(used.arguments), search, yields))


OPENED, CLOSED = "<tool_call>", "</tool_call>"
RESPONSE, RESPONSE_CLOSED = "<tool_response>", "</tool_response>"
# The ways in which models call tools: calls that the engine reads, and calls that the system reads in a text.

ANSWER = "<answer>", "</answer>"
UNREADABLE = Call(name="", arguments="")
"""What was meant as a call and can't be read, such as JSON that is cut off."""

_OPENED, _CLOSED = re.compile(OPENED), re.compile(CLOSED)
_CALL = re.compile(r"<tool_call>(?:.*?</tool_call>|.*)", re.DOTALL)
"""A call, or the rest of a text behind one that doesn't end: no further one ends either."""


def own_calls(written: Generated) -> tuple[Call, ...]:
    """The calls that the engine read, or the one that it couldn't."""
    return written.calls or ((UNREADABLE,) if OPENED in written.text else ())


def told_by_id(chat: Prompt, results: Results) -> Prompt:
    """A turn of the tool's for each call; what wasn't a call is answered by the user."""
    if not chat.turns[-1].calls:
        return going_on(chat, *(piece for _, each in results for piece in each.pieces))
    return chat.add(*(tool(call.id, *each.pieces) for call, each in results))


def tagged_calls(written: Generated) -> tuple[Call, ...]:
    """The calls between tags, in their order; none where there aren't as many closing tags as opening ones."""
    text = written.text
    return _calls_in(text) if text.count(OPENED) == text.count(CLOSED) else ()


def paired_calls(written: Generated) -> tuple[Call, ...]:
    """The same, and none where a closing tag stands before the opening one of its number, as by the code of ReCall."""
    opened, closed = ([each.start() for each in tag.finditer(written.text)] for tag in (_OPENED, _CLOSED))
    return () if any(map(gt, opened, closed)) else tagged_calls(written)


def first_tagged_call(written: Generated) -> tuple[Call, ...]:
    """The first call between tags, unless the message answers, as by the code of Tongyi DeepResearch."""
    if ANSWER[0] in written.text and ANSWER[1] in written.text:
        return ()
    return _calls_in(written.text)[:1]


def told_together(chat: Prompt, results: Results) -> Prompt:
    """One turn of the user's with a block for each call."""
    blocks = [(f"{RESPONSE}\n", *each.pieces, f"\n{RESPONSE_CLOSED}") for _, each in results]
    gapped: list[str | Piece] = [piece for block in blocks for piece in ("\n", *block)]
    return going_on(chat, *gapped[1:])


def told_with_calls(chat: Prompt, results: Results) -> Prompt:
    """The same, where each block has its call as it was written, as by the code of ReCall."""
    asked = (each[len(OPENED) : -len(CLOSED)].strip() for each in _whole_calls(chat.written[-1]))
    blocks = (
        (RESPONSE, Written(call), "\n", *each.pieces, f"\n{RESPONSE_CLOSED}\n")
        for call, (_, each) in zip(asked, results, strict=True)
    )
    return going_on(chat, *(piece for block in blocks for piece in block))


def schemas(tools: Sequence[Tool]) -> str:
    """The tools as a prompt shows them: a function's JSON a line."""
    functions = (
        {"name": each.name, "description": each.description, "parameters": msgspec.json.decode(each.parameters)}
        for each in tools
    )
    return "\n".join(msgspec.json.encode({"type": "function", "function": each}).decode() for each in functions)


def _calls_in(text: str) -> tuple[Call, ...]:
    return tuple(map(_read, _whole_calls(text)))


def _whole_calls(text: str) -> Iterator[str]:
    return (match[0] for match in _CALL.finditer(text) if match[0].endswith(CLOSED))


def _read(text: str) -> Call:
    _, calls = split_calls(text)
    return calls[0] if calls else UNREADABLE


Calls = Literal["own", "tagged"]
"""Whether a model calls tools in its own way, as its provider or its chat template has it, or as its prompt says."""


class Calling(Struct, frozen=True, kw_only=True):
    """How a model calls tools, those that are shown to it in its own way, and the words that show them in a text."""

    way: Way
    tools: tuple[Tool, ...] = ()
    words: tuple[str | Piece, ...] = ()


def calling(calls: Calls, tools: Sequence[Tool], shots: Shots, own: Mapping[str, str]) -> Calling:
    """How these tools are called; own: the words of the system, of which `tagged` shows tools."""
    if calls == "own":
        return Calling(way=NATIVE, tools=tuple(tools))
    return Calling(way=TAGGED, words=("\n\n", *worded(shots, own, "tagged", tools=schemas(tools))))


def calling_needs(calls: Calls) -> frozenset[Capability]:
    """What calling tools asks of a model."""
    return frozenset({"turns", "tools"} if calls == "own" else {"turns"})


NATIVE = Way(calls=own_calls, append=told_by_id)
FIRST_TAGGED = Way(calls=first_tagged_call, append=told_together, stop=(f"\n{RESPONSE}", RESPONSE))

TAGGED = Way(calls=tagged_calls, append=told_together)
PAIRED = Way(calls=paired_calls, append=told_with_calls)

OPENING_STEPS = 2
"""Titles that are opened for one call: the one that is named, and the one that is most like it."""


def most_looped(turns: int, max_tokens: int, search: SearchSettings) -> tuple[StepBound, ...]:
    """The messages of a loop first, then the steps of its tools."""
    words = turns * (max_tokens + MOST_CALLS * search.most_words)
    return (
        StepBound(kind="reason", times=turns, output=max_tokens, words=words),
        StepBound(kind="retrieve", times=turns * MOST_CALLS, in_turn=turns),
        StepBound(kind="open", times=OPENING_STEPS * turns * MOST_CALLS, in_turn=OPENING_STEPS * turns),
    )
