"""Agents that search by tags: Search-R1, ReSearch, R1-Searcher, ZeroSearch, Search-o1 and WebThinker are one loop.

What an agent is shown of a search: the paragraphs between its tags, or what is read in them for it.
"""

from functools import partial

from msgspec.structs import replace

from cotrail.core.demonstrations import Shots
from cotrail.core.generation import Capability
from cotrail.core.prompts import Asked, Piece, Prompt, Text, plain, system, user
from cotrail.core.questions import Paragraph, Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, Part, System, expect
from cotrail.systems.parts.prompting import Filling, own_words
from cotrail.systems.parts.rules import Limited, StepBound
from cotrail.systems.parts.searching import found, page_of
from cotrail.systems.parts.steps import text_of
from cotrail.systems.spec import Needs, SystemSpec, description
from cotrail.systems.tag_agents.agents import AGENTS, Observed, SetUp, TagAgent, TagAgentSettings

# The explorer of WebThinker, who searches further and opens pages before it reports (Li et al., 2025, section 3.2).

FINAL = "**Final Information**"
NOT_HELPFUL = "No helpful information found."

LINK = "<|begin_click_link|>", "<|end_click_link|>"
CLICKED = "\n\n<|begin_click_result|>", "<|end_click_result|>\n\n"

PAGE_PARAGRAPHS = 40
"""The most paragraphs of a page that are read for an intent."""

LAST_TOKENS = 512
"""The most tokens of a report that the explorer is asked for at the end of its interactions."""


def explored(prompt: Prompt, paragraphs: tuple[Paragraph, ...], at: SetUp) -> Part[Observed]:
    """What an explorer reports who is shown the reasoning, and pages as they are."""
    text = ""
    for number in range(at.settings.explored):
        written = yield from interaction(prompt, at)
        text, asked = written.text, asked_in(written, at)
        prompt = prompt.wrote(text + written.stop)
        if asked is None or number + 1 == at.settings.explored:
            break
        yields = at.settings.explored - number
        if written.stop == at.agent.query[1]:
            seen = yield from found(asked, at.settings.search)
            shown = at.between_tags(*at.documents(seen, yields))
        else:
            seen = (yield from page_of(asked, at.settings.search))[: at.settings.search.count]
            shown = clicked(*at.documents(seen, yields))
        prompt, paragraphs = prompt.append(*shown), (*paragraphs, *seen)
    return reported(text, paragraphs, at)


def read_through(query: str, reasoning: str, paragraphs: tuple[Paragraph, ...], at: SetUp) -> Part[Observed]:
    """What an explorer reports who has an intent, for whom pages are read, and who has to report in the end.

    It is that of the authors' code, where a search or a page that it asked for before is only marked as one.
    """
    intent = yield from said(at, "reading_intent", reasoning=reasoning)
    words = at.words("reading_explorer", query=query, intent=intent, documents=at.documents(paragraphs))
    prompt = Prompt(turns=(user(*words),))
    before: tuple[tuple[str, str], ...] = ()
    for left in range(at.settings.explored, 0, -1):
        written = yield from interaction(prompt, at)
        prompt, asked = prompt.wrote(written.text + written.stop), asked_in(written, at)
        if asked is None:
            return reported(written.text, paragraphs, at)
        if (written.stop, asked) in before:
            seen = Observed(pieces=(at.notice("reading_repeated"),))
        elif written.stop == at.agent.query[1]:
            results = yield from found(asked, at.settings.search)
            seen = Observed(pieces=at.documents(results, yields=left), paragraphs=results)
        else:
            seen = yield from page_read(asked, prompt.turns[-1].pieces, at)
        before += ((written.stop, asked),)
        around = at.between_tags if written.stop == at.agent.query[1] else clicked
        prompt, paragraphs = prompt.append(*around(*seen.pieces)), (*paragraphs, *seen.paragraphs)
    asking = prompt.append(at.notice("reading_last"), f"\n\n{FINAL}\n\n")
    last = replace(at.message(asking), max_tokens=LAST_TOKENS)
    return reported(FINAL + (yield from text_of(last)), paragraphs, at)


def interaction(prompt: Prompt, at: SetUp) -> Part[Generated]:
    """What the explorer writes up to its next search or page, or its report."""
    return expect((yield at.message(prompt, stop=(at.agent.query[1], LINK[1]))), Generated)


def asked_in(written: Generated, at: SetUp) -> str | None:
    """The query or the title with which a text ends; None where it asks for neither."""
    opened = at.agent.query[0] if written.stop == at.agent.query[1] else LINK[0]
    _, is_open, asked = written.text.rpartition(opened)
    return asked.strip() if written.stop and is_open else None


def page_read(title: str, explored: tuple[Piece, ...], at: SetUp) -> Part[Observed]:
    """What a page says for what it was opened for; explored: what the explorer wrote and was shown."""
    page = (yield from page_of(title, at.settings.search))[:PAGE_PARAGRAPHS]
    if not page:
        return Observed(pieces=(at.notice("reading_missing"),))
    intent = yield from said(at, "reading_click", explored=explored)
    text = yield from said(at, "reading_page", intent=intent, page=at.documents(page))
    return Observed(pieces=(Text(text),), paragraphs=page)


def said(at: SetUp, name: str, **values: Filling) -> Part[str]:
    """What the model says to the prompt of that name, asked by itself."""
    return (yield from text_of(at.message(Prompt(turns=(user(*at.words(name, **values)),))))).strip()


def clicked(*pieces: Piece) -> tuple[Piece, ...]:
    """These between the tags of a page."""
    return (Text(CLICKED[0]), *pieces, Text(CLICKED[1]))


def reported(text: str, paragraphs: tuple[Paragraph, ...], at: SetUp) -> Observed:
    """The information of a report between the agent's tags."""
    return Observed(pieces=at.between_tags(Text(final_information(text))), paragraphs=paragraphs)


def final_information(text: str) -> str:
    """What stands behind the last mark of what was found, in one line."""
    _, is_marked, information = text.rpartition(FINAL)
    return " ".join(information.split()) if is_marked and information.strip() else NOT_HELPFUL


LAST_STEPS = 4
"""Steps of the reasoning so far that are always shown to who reads, counted from the end."""


def observed(query: str, reasoning: str, at: SetUp, yields: int) -> Part[Observed]:
    """Search for a query, and show between the agent's tags what was found, or what is read in it.

    reasoning: all that the agent has written; yields: see `Shown`.
    """
    paragraphs = yield from found(query, at.settings.search)
    if not at.agent.reads:
        return Observed(pieces=at.between_tags(*at.documents(paragraphs, yields)), paragraphs=paragraphs)
    if at.agent.reads == "explorer" and at.settings.explores == "read":
        return (yield from read_through(query, reasoning, paragraphs, at))
    steps = told_steps(reasoning, at.agent.query[0], at.agent.found[0].strip())
    words = at.words("reading", query=query, reasoning=steps, documents=at.documents(paragraphs))
    prompt = Prompt(turns=(user(*words),))
    if at.agent.reads == "explorer":
        return (yield from explored(prompt, paragraphs, at))
    return reported((yield from text_of(at.message(prompt))), paragraphs, at)


def told_steps(reasoning: str, *marks: str) -> str:
    """The reasoning's lines as numbered steps: the first, the last ones and those with a mark, "..." for others."""
    steps = [step for each in reasoning.split("\n") if (step := each.strip())]
    lines: list[str] = []
    for number, step in enumerate(steps, start=1):
        if number == 1 or number > len(steps) - LAST_STEPS or any(mark in step for mark in marks):
            lines.append(f"Step {number}: {step}")
        elif lines[-1] != "...":
            lines.append("...")
    return "\n\n".join(lines)


def tag_agent(agent: TagAgent, question: Question, shots: Shots, settings: TagAgentSettings) -> System:
    """Have the model write one message, into which searches put what they find, until it answers."""
    at = SetUp(agent=agent, shots=shots, settings=settings)
    prompt = opening(question, at)
    said = ""
    paragraphs: tuple[Paragraph, ...] = ()
    queries: tuple[str, ...] = ()
    with Limited("calls") as end:
        for call in range(settings.calls):
            written = expect((yield at.message(prompt, agent.stop)), Generated)
            text = written.text + written.stop
            prompt, said = prompt.wrote(text), said + text
            if is_too_long(written, settings):
                return Answer(text="", sentences=(said,), paragraphs=paragraphs, limit="tokens of context")
            query = agent.query_in(written.text) if written.stop == agent.query[1] else None
            if agent.has_ended(text, query, queries):
                end.limit = ""
                break
            if call + 1 < settings.calls:
                seen = yield from looked(query, queries, said, at, yields=settings.calls - call)
                prompt, paragraphs = prompt.append(*seen.pieces), (*paragraphs, *seen.paragraphs)
                queries += seen.queries
    answer = agent.answer_in(said)
    return Answer(
        text=settings.unanswered if answer is None else answer,
        sentences=(said,),
        paragraphs=paragraphs,
        limit=end.limit,
    )


def opening(question: Question, at: SetUp) -> Prompt:
    """The prompt before anything is written."""
    searches = str(at.settings.searches or at.settings.calls)
    words = at.words("question", question=Asked(question.text), searches=searches)
    if at.agent.layout == "plain":
        return Prompt(turns=(plain(*words),), window=at.settings.window_tokens)
    before = (system(*at.words("system")),) if "system" in own_words(at.agent.words) else ()
    return Prompt(turns=(*before, user(*words)), window=at.settings.window_tokens)


def is_too_long(written: Generated, settings: TagAgentSettings) -> bool:
    """Return whether the prompt and what was written to it take more tokens than the settings allow."""
    most = settings.total_tokens
    return most is not None and written.prompt_tokens + written.generated_tokens > most


def looked(query: str | None, queries: tuple[str, ...], said: str, at: SetUp, yields: int) -> Part[Observed]:
    """What is put behind what was written: what its query found, or the words for what can't be carried out.

    queries: those that were searched for before.
    """
    if query is None:
        return Observed(pieces=(Text("\n"), at.notice("retry"), Text("\n")))
    if not query and at.agent.queryless == "told":
        return Observed(pieces=at.between_tags(at.notice("without_query")))
    if at.settings.searches is not None and len(queries) >= at.settings.searches:
        return Observed(pieces=at.between_tags(at.notice("too_many")))
    if at.agent.repeats == "told" and query in queries:
        return Observed(pieces=at.between_tags(at.notice("repeated")))
    return replace((yield from observed(query, said, at, yields)), queries=(query,))


def run_needs(agent: TagAgent, settings: TagAgentSettings) -> Needs:
    """A corpus, and for a conversation a model that continues in its own turn."""
    capabilities: set[Capability] = {"turns", "continue"} if agent.layout == "turns" else set()
    if settings.top_k or settings.repetition_penalty != 1:
        capabilities.add("sampling")
    return Needs(words=own_words(agent.words), corpus=True, capabilities=frozenset(capabilities))


def step_bounds(agent: TagAgent, question: Question, settings: TagAgentSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    found = settings.search.most_words
    words = settings.calls * (settings.max_tokens + found)
    read = {"": 0, "documents": 1, "explorer": settings.explored}[agent.reads] * (settings.calls - 1)
    # An intent and a last report of each explorer, and with each interaction the intent of a page and its reading.
    asked = 3 * read + 2 * (settings.calls - 1) if settings.explores == "read" else read
    reads = StepBound(kind="reason", times=asked, output=settings.max_tokens, words=words)
    return (
        StepBound(kind="reason", times=settings.calls, output=settings.max_tokens, words=words),
        StepBound(kind="retrieve", times=settings.calls + read),
        *((reads,) if read else ()),
        *((StepBound(kind="open", times=2 * read),) if agent.reads == "explorer" else ()),
    )


SPECS = tuple(
    SystemSpec(
        **description(name),
        settings=agent.settings_type(),
        open=partial(tag_agent, agent),
        needs=partial(run_needs, agent),
        step_bounds=partial(step_bounds, agent),
        released=agent.released,
    )
    for name, agent in AGENTS.items()
)
