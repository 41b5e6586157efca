"""Agents that search by tags: Search-R1, ReSearch, R1-Searcher, ZeroSearch, Search-o1 and WebThinker are one loop."""

from functools import partial
from typing import Any

from msgspec.structs import replace

from cotrail.core.demonstrations import Shots
from cotrail.core.generation import Capability
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Asked, Prompt, Text, plain, system, user
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, LimitReached, Part, System, expect
from cotrail.systems.parts.most import Most
from cotrail.systems.parts.words import own_words
from cotrail.systems.spec import Needs, SystemSpec
from cotrail.systems.tag_agents.agents import AGENTS, TagAgent, TagAgentSettings
from cotrail.systems.tag_agents.asking import SetUp
from cotrail.systems.tag_agents.observing import Observed, observed


def tag_agent(agent: TagAgent, question: Question, shots: Shots, settings: TagAgentSettings) -> System:
    """Have the model write one message, into which searches put what they find, until it answers."""
    at = SetUp(agent=agent, shots=shots, settings=settings)
    prompt = opening(question, at)
    said, limit = "", "calls"
    paragraphs: tuple[Paragraph, ...] = ()
    queries: tuple[str, ...] = ()
    try:
        for call in range(settings.calls):
            written = expect((yield at.message(prompt, agent.stop)), Generated)
            text = written.text + written.stop
            prompt, said = prompt.wrote(text), said + text
            if is_too_long(written, settings):
                return Answer(text="", sentences=(said,), paragraphs=paragraphs, limit="tokens of context")
            query = agent.query_in(written.text) if written.stop == agent.query[1] else None
            if agent.has_ended(text, query, queries):
                limit = ""
                break
            if call + 1 < settings.calls:
                seen = yield from looked(query, queries, said, at, yields=settings.calls - call)
                prompt, paragraphs = prompt.append(*seen.pieces), (*paragraphs, *seen.paragraphs)
                queries += seen.queries
    except LimitReached as reached:
        limit = reached.limit
    answer = agent.answer(said)
    return Answer(
        text=settings.unanswered if answer is None else answer, sentences=(said,), paragraphs=paragraphs, limit=limit
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
        return Observed(pieces=(Text("\n"), at.told("retry"), Text("\n")))
    if at.settings.searches is not None and len(queries) >= at.settings.searches:
        return Observed(pieces=at.between_tags(at.told("too_many")))
    if at.agent.repeats == "told" and query in queries:
        return Observed(pieces=at.between_tags(at.told("repeated")))
    return replace((yield from observed(query, said, at, yields)), queries=(query,))


def needs(agent: TagAgent, settings: TagAgentSettings) -> Needs:
    """A corpus, and for a conversation a model that goes on in its own turn."""
    capabilities: set[Capability] = {"turns", "continue"} if agent.layout == "turns" else set()
    if settings.top_k or settings.repetition_penalty != 1:
        capabilities.add("sampling")
    return Needs(words=own_words(agent.words), corpus=True, capabilities=frozenset(capabilities))


def most(agent: TagAgent, question: Question, settings: TagAgentSettings) -> tuple[Most, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    found = settings.search.most_words
    words = settings.calls * (settings.max_tokens + found)
    read = {"": 0, "documents": 1, "explorer": settings.explored}[agent.reads] * (settings.calls - 1)
    reads = Most(kind="reason", times=read, output=settings.max_tokens, words=words)
    return (
        Most(kind="reason", times=settings.calls, output=settings.max_tokens, words=words),
        Most(kind="retrieve", times=settings.calls + read),
        *((reads,) if read else ()),
        *((Most(kind="open", times=2 * read),) if agent.reads == "explorer" else ()),
    )


def released(agent: TagAgent, *, instructed: bool) -> dict[str, Any]:  # noqa: ARG001 - see `Released`
    """Where the authors' code departs from what is said in the paper."""
    return dict(agent.released)


SPECS = tuple(
    SystemSpec(
        name=agent.name,
        version=1,
        title=agent.title,
        meaning=agent.meaning,
        paper=agent.paper,
        settings=agent.settings,
        open=partial(tag_agent, agent),
        needs=partial(needs, agent),
        most=partial(most, agent),
        released=partial(released, agent),
    )
    for agent in AGENTS
)
