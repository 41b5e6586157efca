"""An agent that calls tools: it searches and opens pages, as often as it likes and several at once, until it answers.

The loop is that of ReAct (Yao et al., 2023) in the form of today's models, whose calls are part of their messages.
"""

from functools import partial
from typing import Literal

from msgspec import Struct

from cotrail.common.humanize import Positive
from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import Shots
from cotrail.core.prompts import Asked, Prompt, Written, system, user
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, Part, System, expect
from cotrail.systems.parts.answers import behind
from cotrail.systems.parts.prompting import own_words, worded
from cotrail.systems.parts.rules import StepBound
from cotrail.systems.parts.searching import SearchSettings
from cotrail.systems.parts.steps import going_on, last_step, text_of
from cotrail.systems.spec import Needs, SystemSpec, description
from cotrail.systems.tool_agents import loop
from cotrail.systems.tool_agents.tools import OPEN, SEARCH

OWN = own_words("tool_agent")
TOOLS = {each.tool.name: each for each in (SEARCH, OPEN)}


class ToolAgentSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent that calls tools."""

    search: SearchSettings = SearchSettings()
    turns: Positive = 10
    """Messages of the model's, at most."""

    searches: Positive | None = None
    """Searches, at most; as many as the turns allow unless given."""

    max_tokens: Positive = 1024
    """The most tokens of a message."""

    calls: loop.Calls = "own"
    """How the model calls tools: in its `own` way, or, for models that weren't tuned to, `tagged`: as JSON between
    tags, which the prompt explains."""

    context: Literal["drop", "summarise"] = "drop"
    """What happens to a long conversation: where it doesn't fit the model's context the oldest paragraphs `drop` out of
    the prompt, or from `context_tokens` on the model is asked to `summarise` it, and continues from that alone."""

    context_tokens: Positive = 16_000
    """The tokens of a conversation from which on it is summarised."""

    summary_tokens: Positive = 1024
    """The most tokens of a summary."""

    answers_at_limit: bool = True
    """Whether the model is asked for its answer where a limit ends the search; else there is none then."""


def tool_agent(question: Question, shots: Shots, settings: ToolAgentSettings) -> System:
    """Have the model search and open pages by tool calls until it answers."""
    how = loop.calling(settings.calls, [each.tool for each in TOOLS.values()], shots, OWN)
    chat = opening(question, shots, how)
    bounds = loop.Bounds(turns=settings.turns, searches=settings.searches)
    shorten = partial(summarised, chat, shots, settings) if settings.context == "summarise" else None
    drawn = loop.Drawn(max_tokens=settings.max_tokens)
    looped = yield from loop.tool_loop(chat, TOOLS, how.way, bounds, drawn, settings.search, shorten)
    text = "" if looped.limit else looped.text
    if looped.limit and settings.answers_at_limit:
        asked = going_on(looped.chat, *worded(shots, OWN, "wrap_up", question=Asked(question.text)))
        reply = yield from last_step(Reason(prompt=asked, max_tokens=settings.max_tokens, until="end", calls=False))
        text = expect(reply, Generated).text
    return Answer(
        text=labelled(text), sentences=(text,) if text else (), paragraphs=looped.paragraphs, limit=looped.limit
    )


def opening(question: Question, shots: Shots, how: loop.Calling) -> Prompt:
    """The conversation's first turns."""
    turns = (
        system(*worded(shots, OWN, "system"), *how.words),
        user(*worded(shots, OWN, "question", question=Asked(question.text))),
    )
    return Prompt(turns=turns, tools=how.tools)


def summarised(begun: Prompt, shots: Shots, settings: ToolAgentSettings, so_far: loop.Looped) -> Part[Prompt]:
    """The conversation to go on with: where it is long its beginning and a summary."""
    if so_far.tokens < settings.context_tokens:
        return so_far.chat
    asked = going_on(so_far.chat, *worded(shots, OWN, "summarise"))
    reason = Reason(prompt=asked, max_tokens=settings.summary_tokens, until="end")
    summary = yield from text_of(reason)
    # A model that calls a tool instead has summarised nothing.
    if not summary:
        return so_far.chat
    return going_on(begun, *worded(shots, OWN, "resume", summary=Written(summary)))


def labelled(text: str) -> str:
    """The answer that a message states, or all of it."""
    return behind(text, "answer:") or text.strip()


def step_bounds(question: Question, settings: ToolAgentSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    looped = loop.most_looped(settings.turns, settings.max_tokens, settings.search)
    last = StepBound(kind="reason", times=1, output=settings.max_tokens, words=looped[0].words)
    if settings.context == "drop":
        return (*looped, last)
    summaries = StepBound(kind="reason", times=settings.turns, output=settings.summary_tokens, words=looped[0].words)
    return (*looped, summaries, last)


SPEC = SystemSpec(
    **description("tool-agent"),
    settings=ToolAgentSettings,
    open=tool_agent,
    needs=lambda settings: Needs(words=OWN, corpus=True, capabilities=loop.calling_needs(settings.calls)),
    step_bounds=step_bounds,
)
SPECS = (SPEC,)
