"""Deep research: a supervisor gives tasks to researchers, who work side by side; a report answers from their findings.

The shape is that of open_deep_research (LangChain, 2025, `deep_researcher.py`); the question is never asked back about.
"""

from functools import partial
from typing import Annotated

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
from cotrail.systems.parts.prompting import Filling, own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound
from cotrail.systems.parts.searching import SearchSettings
from cotrail.systems.parts.steps import going_on, last_text, text_of
from cotrail.systems.spec import Needs, SystemSpec, description
from cotrail.systems.tool_agents import loop
from cotrail.systems.tool_agents.tool_agent import TOOLS, labelled
from cotrail.systems.tool_agents.tools import AgentTool, Observed, described

OWN = own_words("deep_research")


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
    words = worded(shots, OWN, "report", question=asked, brief=Written(brief), findings=findings)
    report = Read(prompt=Prompt(turns=(user(*words),)), max_tokens=settings.max_tokens, until="end")
    text = yield from last_text(report)
    return Answer(text=labelled(text), sentences=(text,), paragraphs=led.paragraphs, limit=end.limit)


def supervised(asked: Asked, brief: str, shots: Shots, settings: DeepResearchSettings) -> Part[loop.Looped]:
    """The supervisor's conversation, with the findings of the researchers that it started."""
    run = partial(researched, shots=shots, settings=settings)
    tools = {RESEARCH.name: AgentTool(tool=RESEARCH, arguments=ResearchArguments, run=run)}
    words = worded(shots, OWN, "supervisor", question=asked, brief=Written(brief))
    how = loop.calling(settings.calls, (RESEARCH, COMPLETE), shots, OWN)
    chat = Prompt(turns=(user(*words, *how.words),), tools=how.tools)
    bounds = loop.Bounds(turns=settings.rounds, calls=settings.researchers)
    drawn = loop.Drawn(max_tokens=settings.max_tokens)
    way = replace(how.way, calls=partial(tasks, how.way))
    return (yield from loop.tool_loop(chat, tools, way, bounds, drawn, settings.search))


def researched(
    arguments: ResearchArguments, search: SearchSettings, yields: int, *, shots: Shots, settings: DeepResearchSettings
) -> Part[Observed]:
    """What a researcher finds on a topic, written down."""
    how = loop.calling(settings.calls, [each.tool for each in TOOLS.values()], shots, OWN)
    turns: tuple[Turn, Turn] = (
        system(*worded(shots, OWN, "researcher"), *how.words),
        user(*worded(shots, OWN, "topic", topic=arguments.topic)),
    )
    chat = Prompt(turns=turns, tools=how.tools)
    bounds, drawn = loop.Bounds(turns=settings.turns), loop.Drawn(max_tokens=settings.max_tokens)
    looped = yield from loop.tool_loop(chat, TOOLS, how.way, bounds, drawn, search)
    asked = going_on(looped.chat, *worded(shots, OWN, "compress", topic=arguments.topic))
    reason = Reason(prompt=asked, max_tokens=settings.findings_tokens, until="end", calls=not looped.limit)
    findings = yield reason
    return Observed((Written(expect(findings, Generated).text, yields=yields),), looped.paragraphs)


def wrote(shots: Shots, name: str, max_tokens: int, **values: Filling) -> Part[str]:
    """What the model writes to the prompt of that name."""
    prompt = Prompt(turns=(user(*worded(shots, OWN, name, **values)),))
    return (yield from text_of(Reason(prompt=prompt, max_tokens=max_tokens, until="end")))


def tasks(way: loop.Way, written: Generated) -> tuple[Call, ...]:
    """The calls of a supervisor; none where one of them says that the research is complete."""
    calls = way.calls(written)
    return () if any(call.name == COMPLETE.name for call in calls) else calls


RESEARCH: Tool = described("research", "Has a researcher look into one topic and report.", ResearchArguments)
COMPLETE: Tool = described("research_complete", "Ends the research: enough is known.", NoArguments)


def step_bounds(question: Question, settings: DeepResearchSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
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


SPEC = SystemSpec(
    **description("deep-research"),
    settings=DeepResearchSettings,
    open=deep_research,
    needs=lambda settings: Needs(words=OWN, corpus=True, capabilities=loop.calling_needs(settings.calls)),
    step_bounds=step_bounds,
)
SPECS = (SPEC,)
