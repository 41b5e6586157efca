"""Agents of models that were trained to call tools: ReCall and Tongyi DeepResearch.

ReCall reasons with calls of functions between tags, learned by reinforcement (Chen et al., 2025); the loop is that of
the authors' code, `src/re_call/inference/re_call.py`. Tongyi DeepResearch searches, and visits pages for a goal (Tongyi
DeepResearch Team, 2025); the loop is that of its authors' code, `inference/react_agent.py`.
"""

from functools import partial
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import Shots
from cotrail.core.prompts import Asked, Prompt, Written, system, user
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, Part, System, expect
from cotrail.systems.parts.answers import boxed, first_between
from cotrail.systems.parts.prompting import own_words, worded
from cotrail.systems.parts.rules import StepBound
from cotrail.systems.parts.searching import SearchSettings, page_of, shown
from cotrail.systems.parts.steps import going_on, in_parallel, last_text
from cotrail.systems.spec import Needs, SystemSpec, always, description
from cotrail.systems.tool_agents.loop import (
    ANSWER,
    FIRST_TAGGED,
    PAIRED,
    Bounds,
    Drawn,
    Way,
    most_looped,
    schemas,
    tool_loop,
)
from cotrail.systems.tool_agents.tools import NOTHING_FOUND, SEARCH, SEARCHES, AgentTool, Observed, Tools, described

RECALL = own_words("recall")
TONGYI = own_words("tongyi_deepresearch")

TOOLS = {SEARCH.tool.name: SEARCH}


class ReCallSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ReCall."""

    search: SearchSettings = SearchSettings()
    turns: Positive = 5
    """Messages of the model's, at most."""

    max_tokens: Positive = 512
    """The most tokens of a message."""

    begins: str = "<think>"
    """With what each message begins; empty for models that aren't trained on it."""

    temperature: Temperature | None = 0.0
    """The temperature of messages."""


def recall(question: Question, shots: Shots, settings: ReCallSettings, way: Way = PAIRED) -> System:
    r"""Have the model think and call functions between tags until a message calls none; the answer is in `\boxed{}`."""
    shown = schemas([each.tool for each in TOOLS.values()])
    chat = Prompt(
        turns=(
            system(*worded(shots, RECALL, "system", tools=shown)),
            user(*worded(shots, RECALL, "question", question=Asked(question.text))),
        )
    )
    drawn = Drawn(max_tokens=settings.max_tokens, temperature=settings.temperature)
    bounds = Bounds(turns=settings.turns)
    way = replace(way, begins=settings.begins)
    looped = yield from tool_loop(chat, TOOLS, way, bounds, drawn, settings.search)
    # What the last message boxes counts also where it calls functions, as by the authors' code.
    text = boxed(looped.text) or ""
    return Answer(text=text, sentences=(looped.text,), paragraphs=looped.paragraphs, limit=looped.limit)


def run_needs(settings: ReCallSettings) -> Needs:
    """Conversations, whose last turn is continued where messages begin with something, and a corpus."""
    continued = {"continue"} if settings.begins else set()
    return Needs(words=RECALL, corpus=True, capabilities=frozenset({"turns", *continued}))  # type: ignore[arg-type]


NO_ANSWER = "No answer found."


class VisitArguments(Struct, frozen=True):
    """Pages to be read."""

    title: Annotated[tuple[str, ...] | str, Meta(description="The title of a page, or a list of titles.")]
    goal: Annotated[str, Meta(description="What is to be found out from the pages.")]


class TongyiSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tongyi DeepResearch."""

    search: SearchSettings = SearchSettings(count=10)
    calls: Positive = 100
    """Messages of the model's, at most; behind the last one there is no answer."""

    context_tokens: Positive = 110 * 1024
    """The tokens of the conversation, what a tool said last among them, beyond which the model has to answer."""

    max_tokens: Positive = 10_000
    """The most tokens of a message."""

    summary_tokens: Positive = 1024
    """The most tokens of what is read on a page."""

    page_paragraphs: Positive = 40
    """The most paragraphs of a page that are read."""

    date: str = ""
    """The day that the model is given as today; none unless given, since a run may go on for longer."""

    temperature: Temperature | None = 0.6
    """The temperature of messages."""

    top_p: Annotated[float, Meta(gt=0, le=1)] = 0.95
    """Only the likeliest tokens that together have this probability are drawn."""


def first_answer(text: str, limit: str) -> str:
    """What is in the first tags; all of the text where the model had to answer and has no tags."""
    if limit == "turns":
        return NO_ANSWER
    if limit and not all(tag in text for tag in ANSWER):
        return text
    answer = first_between(text, *ANSWER)
    return NO_ANSWER if answer is None else answer


def tongyi_deepresearch(question: Question, shots: Shots, settings: TongyiSettings) -> System:
    """Have the model search, and read pages for a goal, until it writes an answer between tags."""
    visit = AgentTool(tool=VISIT, arguments=VisitArguments, run=partial(visited, shots=shots, settings=settings))
    tools: Tools = {"search": SEARCHES, "visit": visit}
    drawn = Drawn(max_tokens=settings.max_tokens, temperature=settings.temperature, top_p=settings.top_p)
    chat = opening(question, shots, tools, settings)
    bounds = Bounds(turns=settings.calls, prompt=settings.context_tokens)
    looped = yield from tool_loop(chat, tools, FIRST_TAGGED, bounds, drawn, settings.search)
    text, limit = looped.text, looped.limit
    if limit and limit != "turns":
        # The last message is overwritten, whatever it holds, unless it is the question.
        kept = replace(looped.chat, turns=looped.chat.turns[:-1]) if looped.turns else looped.chat
        asked = going_on(kept, *worded(shots, TONGYI, "wrap_up"))
        reason = Reason(prompt=asked, max_tokens=drawn.max_tokens, until="end", temperature=drawn.temperature)
        text = yield from last_text(replace(reason, top_p=drawn.top_p))
    return Answer(
        text=first_answer(text, limit),
        sentences=(text,),
        paragraphs=looped.paragraphs,
        limit="calls" if limit == "turns" else limit,
    )


def opening(question: Question, shots: Shots, tools: Tools, settings: TongyiSettings) -> Prompt:
    """The conversation's first turns."""
    described = schemas([each.tool for each in tools.values()])
    date = f"\n\nToday's date: {settings.date}" if settings.date else ""
    return Prompt(
        turns=(
            system(*worded(shots, TONGYI, "system", tools=described), *([date] if date else [])),
            user(*worded(shots, TONGYI, "question", question=Asked(question.text))),
        )
    )


def visited(
    arguments: VisitArguments, search: SearchSettings, yields: int, *, shots: Shots, settings: TongyiSettings
) -> Part[Observed]:
    """What the model reads on each page for the goal, asked by itself of each; all pages at once."""
    titles = (arguments.title,) if isinstance(arguments.title, str) else arguments.title[:MOST_PAGES]
    read = yield from in_parallel(_read(title, arguments.goal, search, shots, settings) for title in titles)
    blocks = [
        (f"What {title} says about the goal:\n", *each.pieces, "\n") for title, each in zip(titles, read, strict=True)
    ]
    pieces = tuple(
        piece if isinstance(piece, str) else replace(piece, yields=yields) for each in blocks for piece in each
    )
    return Observed(pieces or (NOTHING_FOUND,), tuple(paragraph for each in read for paragraph in each.paragraphs))


MOST_PAGES = 10
"""Pages of one call that are read."""


def _read(title: str, goal: str, search: SearchSettings, shots: Shots, settings: TongyiSettings) -> Part[Observed]:
    page = (yield from page_of(title, search))[: settings.page_paragraphs]
    if not page:
        return Observed((NOTHING_FOUND,))
    shown_page = shown(page, "{text}\n", search)
    prompt = Prompt(turns=(user(*worded(shots, TONGYI, "visit", goal=goal, page=shown_page)),))
    reply = yield Reason(prompt=prompt, max_tokens=settings.summary_tokens, until="end", temperature=0.0)
    return Observed((Written(expect(reply, Generated).text),), page)


VISIT = described("visit", "Reads pages for a goal and tells what they say about it.", VisitArguments)


def tongyi_bounds(question: Question, settings: TongyiSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    looped = most_looped(settings.calls, settings.max_tokens, settings.search)
    words = settings.page_paragraphs * settings.search.paragraph_words
    visits = StepBound(kind="reason", times=settings.calls * MOST_PAGES, output=settings.summary_tokens, words=words)
    return (*looped, visits, StepBound(kind="reason", times=1, output=settings.max_tokens, words=looped[0].words))


SPECS = (
    SystemSpec(
        **description("recall"),
        settings=ReCallSettings,
        open=recall,
        needs=run_needs,
        step_bounds=lambda _, settings: most_looped(settings.turns, settings.max_tokens, settings.search),
    ),
    SystemSpec(
        **description("tongyi-deepresearch"),
        settings=TongyiSettings,
        open=tongyi_deepresearch,
        needs=always(Needs(words=TONGYI, corpus=True, capabilities=frozenset({"turns"}))),
        step_bounds=tongyi_bounds,
    ),
)
