"""An agent that calls tools: it searches and opens pages, as often as it likes and several at once, until it answers.

The loop is that of ReAct (Yao et al., 2023) in the form of today's models, whose calls are part of their messages.
"""

from functools import partial
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from cotrail.common.humanize import Positive
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.calls import Call, Tool
from cotrail.core.demonstrations import Shots
from cotrail.core.prompts import Asked, Prompt, Turn, Written, system, user
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, Part, System, expect
from cotrail.systems.parts.answers import behind
from cotrail.systems.parts.prompting import Filling, own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound
from cotrail.systems.parts.searching import SearchSettings
from cotrail.systems.parts.steps import going_on, last_step, last_text, text_of
from cotrail.systems.spec import Needs, SystemSpec, description
from cotrail.systems.tool_agents import loop
from cotrail.systems.tool_agents.tools import OPEN, SEARCH, AgentTool, Observed, described

OWN = own_words("tool_agent")
RESEARCHED = own_words("deep_research")
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


# Deep research: a supervisor gives tasks to researchers, who work side by side; a report answers from their findings.
#
# The shape is that of open_deep_research (LangChain, 2025, `deep_researcher.py`); nothing is asked back.


class ResearchArguments(Struct, frozen=True):
    """A task."""

    topic: Annotated[str, Meta(description="The topic to be researched, in full sentences.")]


class NoArguments(Struct, frozen=True):
    """Nothing."""


class DeepResearchSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Deep research."""

    search: SearchSettings = SearchSettings()
    rounds: Positive = 6
    """Messages of the supervisor's, at most."""

    researchers: Annotated[int, Meta(ge=1, le=loop.MOST_CALLS)] = 5
    """Researchers that work side by side, at most; the supervisor learns which tasks weren't taken."""

    turns: Positive = 10
    """Messages of a researcher's, at most."""

    calls: loop.Calls = "own"
    """How the model calls tools: in its `own` way, or, for models that weren't tuned to, `tagged`: as JSON between
    tags, which the prompts explain."""

    max_tokens: Positive = 1024
    """The most tokens of a message, of the brief and of the report."""

    findings_tokens: Positive = 1024
    """The most tokens of what a researcher writes down."""


def deep_research(question: Question, shots: Shots, settings: DeepResearchSettings) -> System:
    """Have a supervisor start researchers until it knows enough, then a report answer the question."""
    asked = Asked(question.text)
    brief, led = "", loop.Looped(chat=Prompt(turns=(user(asked),)))
    with Limited() as end:
        brief = yield from wrote(shots, "brief", settings.max_tokens, question=asked)
        led = yield from supervised(asked, brief, shots, settings)
        end.limit = led.limit
    # Behind the first turn, what a model wrote and is in no turn of the supervisor's is a researcher's.
    replies = [piece for turn in led.chat.turns[1:] if turn.role != "assistant" for piece in turn.pieces]
    findings = [each for piece in replies if isinstance(piece, Written) for each in (piece, "\n\n")]
    words = worded(shots, RESEARCHED, "report", question=asked, brief=Written(brief), findings=findings)
    report = Read(prompt=Prompt(turns=(user(*words),)), max_tokens=settings.max_tokens, until="end")
    text = yield from last_text(report)
    return Answer(text=labelled(text), sentences=(text,), paragraphs=led.paragraphs, limit=end.limit)


def supervised(asked: Asked, brief: str, shots: Shots, settings: DeepResearchSettings) -> Part[loop.Looped]:
    """The supervisor's conversation, with the findings of the researchers that it started."""
    run = partial(researched, shots=shots, settings=settings)
    tools = {RESEARCH.name: AgentTool(tool=RESEARCH, arguments=ResearchArguments, run=run)}
    words = worded(shots, RESEARCHED, "supervisor", question=asked, brief=Written(brief))
    how = loop.calling(settings.calls, (RESEARCH, COMPLETE), shots, RESEARCHED)
    chat = Prompt(turns=(user(*words, *how.words),), tools=how.tools)
    bounds = loop.Bounds(turns=settings.rounds, calls=settings.researchers)
    drawn = loop.Drawn(max_tokens=settings.max_tokens)
    way = replace(how.way, calls=partial(tasks, how.way))
    return (yield from loop.tool_loop(chat, tools, way, bounds, drawn, settings.search))


def researched(
    arguments: ResearchArguments, search: SearchSettings, yields: int, *, shots: Shots, settings: DeepResearchSettings
) -> Part[Observed]:
    """What a researcher finds on a topic, written down."""
    how = loop.calling(settings.calls, [each.tool for each in TOOLS.values()], shots, RESEARCHED)
    turns: tuple[Turn, Turn] = (
        system(*worded(shots, RESEARCHED, "researcher"), *how.words),
        user(*worded(shots, RESEARCHED, "topic", topic=arguments.topic)),
    )
    chat = Prompt(turns=turns, tools=how.tools)
    bounds, drawn = loop.Bounds(turns=settings.turns), loop.Drawn(max_tokens=settings.max_tokens)
    looped = yield from loop.tool_loop(chat, TOOLS, how.way, bounds, drawn, search)
    asked = going_on(looped.chat, *worded(shots, RESEARCHED, "compress", topic=arguments.topic))
    reason = Reason(prompt=asked, max_tokens=settings.findings_tokens, until="end", calls=not looped.limit)
    findings = yield reason
    return Observed((Written(expect(findings, Generated).text, yields=yields),), looped.paragraphs)


def wrote(shots: Shots, name: str, max_tokens: int, **values: Filling) -> Part[str]:
    """What the model writes to the prompt of that name."""
    prompt = Prompt(turns=(user(*worded(shots, RESEARCHED, name, **values)),))
    return (yield from text_of(Reason(prompt=prompt, max_tokens=max_tokens, until="end")))


def tasks(way: loop.Way, written: Generated) -> tuple[Call, ...]:
    """The calls of a supervisor; none where one of them says that the research is complete."""
    calls = way.calls(written)
    return () if any(call.name == COMPLETE.name for call in calls) else calls


RESEARCH: Tool = described("research", "Has a researcher look into one topic and report.", ResearchArguments)
COMPLETE: Tool = described("research_complete", "Ends the research: enough is known.", NoArguments)


def deep_research_bounds(question: Question, settings: DeepResearchSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    researchers = settings.rounds * settings.researchers
    messages, *looked_up = loop.most_looped(researchers * settings.turns, settings.max_tokens, settings.search)
    words = messages.words // researchers
    prompt_words = researchers * settings.findings_tokens
    return (
        StepBound(kind="reason", times=messages.times, output=settings.max_tokens, words=words),
        *looked_up,
        StepBound(kind="reason", times=researchers, output=settings.findings_tokens, words=words),
        StepBound(kind="reason", times=1 + settings.rounds, output=settings.max_tokens, words=prompt_words),
        StepBound(kind="read", times=1, output=settings.max_tokens, words=prompt_words),
    )


SPECS = (
    SystemSpec(
        **description("tool-agent"),
        settings=ToolAgentSettings,
        open=tool_agent,
        needs=lambda settings: Needs(words=OWN, corpus=True, capabilities=loop.calling_needs(settings.calls)),
        step_bounds=step_bounds,
    ),
    SystemSpec(
        **description("deep-research"),
        settings=DeepResearchSettings,
        open=deep_research,
        needs=lambda settings: Needs(words=RESEARCHED, corpus=True, capabilities=loop.calling_needs(settings.calls)),
        step_bounds=deep_research_bounds,
    ),
)
