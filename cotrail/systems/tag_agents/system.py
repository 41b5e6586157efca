"""Agents that search by tags: Search-R1, ReSearch, R1-Searcher, ZeroSearch and Search-o1 are one loop."""

from functools import partial
from typing import Any

from cotrail.core.demonstrations import Shots
from cotrail.core.generation import Capability
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Asked, Prompt, Text, plain, system, user
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, LimitReached, Part, System, expect
from cotrail.systems.parts.most import Most
from cotrail.systems.parts.words import own_words, worded
from cotrail.systems.spec import Needs, SystemSpec
from cotrail.systems.tag_agents.agents import AGENTS, TagAgent, TagAgentSettings
from cotrail.systems.tag_agents.observing import Observed, between_tags, message, observed


def tag_agent(agent: TagAgent, question: Question, shots: Shots, settings: TagAgentSettings) -> System:
    """Have the model write one message, into which searches put what they find, until it answers."""
    prompt = opening(agent, question, shots, settings)
    said, limit = "", "calls"
    paragraphs: tuple[Paragraph, ...] = ()
    queries: tuple[str, ...] = ()
    try:
        for call in range(settings.calls):
            written = expect((yield message(prompt, agent, settings, stops=True)), Generated)
            prompt = prompt.wrote(written.text + written.stop)
            said += written.text + written.stop
            if is_too_long(written, settings):
                return Answer(text="", sentences=(said,), paragraphs=paragraphs, limit="tokens of context")
            query = agent.query_in(written.text) if written.stop == agent.query[1] else None
            if query is None and (not agent.retries or agent.answer(written.text + written.stop) is not None):
                limit = ""
                break
            if call + 1 < settings.calls:
                seen = yield from looked(query, queries, said, agent, shots, settings, yields=settings.calls - call)
                prompt, paragraphs = prompt.append(*seen.pieces), (*paragraphs, *seen.paragraphs)
                queries += () if query is None else (query,)
    except LimitReached as reached:
        limit = reached.limit
    answer = agent.answer(said)
    return Answer(
        text=settings.unanswered if answer is None else answer,
        sentences=(said,),
        paragraphs=paragraphs,
        limit=limit,
    )


def opening(agent: TagAgent, question: Question, shots: Shots, settings: TagAgentSettings) -> Prompt:
    """The prompt before anything is written."""
    own, asked = own_words(agent.words), Asked(question.text)
    words = worded(shots, own, "question", question=asked, searches=str(settings.searches or settings.calls))
    if agent.layout == "plain":
        return Prompt(turns=(plain(*words),), window=settings.window_tokens)
    before = (system(*worded(shots, own, "system")),) if "system" in own else ()
    return Prompt(turns=(*before, user(*words)), window=settings.window_tokens)


def is_too_long(written: Generated, settings: TagAgentSettings) -> bool:
    """Whether the prompt and what was written to it take more tokens than the settings allow."""
    return (
        settings.total_tokens is not None and written.prompt_tokens + written.generated_tokens > settings.total_tokens
    )


def looked(
    query: str | None,
    queries: tuple[str, ...],
    said: str,
    agent: TagAgent,
    shots: Shots,
    settings: TagAgentSettings,
    yields: int,
) -> Part[Observed]:
    """What is put behind what was written: what its query found, or the words for what can't be carried out.

    queries: those that were searched for before.
    """

    def told(name: str) -> tuple[Text, ...]:
        return tuple(Text(str(piece)) for piece in worded(shots, own_words(agent.words), name))

    if query is None:
        return Observed(pieces=(Text("\n"), *told("invalid"), Text("\n")))
    if settings.searches is not None and len(queries) >= settings.searches:
        return Observed(pieces=between_tags(told("too_many"), agent, settings))
    if agent.reads and query in queries:
        return Observed(pieces=between_tags(told("repeated"), agent, settings))
    return (yield from observed(query, said, agent, shots, settings, yields))


def needs(agent: TagAgent, settings: TagAgentSettings) -> Needs:
    """A corpus, and for a conversation a model that goes on in its own turn."""
    capabilities: set[Capability] = {"turns", "continue"} if agent.layout == "turns" else set()
    if settings.top_k or settings.repetition_penalty != 1:
        capabilities.add("sampling")
    return Needs(words=own_words(agent.words), corpus=True, capabilities=frozenset(capabilities))


def most(agent: TagAgent, question: Question, settings: TagAgentSettings) -> tuple[Most, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    found = settings.search.count * settings.search.paragraph_words
    words = settings.calls * (settings.max_tokens + found)
    reads = Most(kind="reason", times=settings.calls - 1, output=settings.max_tokens, words=words)
    return (
        Most(kind="reason", times=settings.calls, output=settings.max_tokens, words=words),
        Most(kind="retrieve", times=settings.calls),
        *([reads] if agent.reads else ()),
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
