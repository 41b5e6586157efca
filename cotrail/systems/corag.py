"""CoRAG: a chain of sub-queries, each searched for and answered, before the final answer (Wang et al., 2025)."""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Prompt, Shown, user
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Answer, Part, System
from cotrail.systems.parts import prompting
from cotrail.systems.parts.prompting import own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound
from cotrail.systems.parts.searching import SearchSettings, found, shown
from cotrail.systems.parts.steps import last_text, text_of
from cotrail.systems.spec import Needs, SystemSpec, always, description

OWN = own_words("corag")

PARAGRAPH = "{title}\n{text}\n\n"
NOTHING_YET = "None\n"
DRAWS = 4
"""How often a sub-query is written for each that the path may have: those that were asked before are drawn again."""

_NUMBERED = re.compile(r"\AIntermediate query \d{1,3}:")


class CoragSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """CoRAG, decoded greedily."""

    search: SearchSettings = SearchSettings()

    documents: Positive = 20
    """Paragraphs for the main question itself, which the final answer is shown."""

    queries: Positive = 6
    """The number of sub-queries (the path's length L)."""

    max_query_tokens: Positive = 64
    """The most tokens of a sub-query."""

    max_intermediate_tokens: Positive = 64
    """The most tokens of a sub-query's answer."""

    max_answer_tokens: Positive = 128
    """The most tokens of the final answer."""

    temperature: Temperature = 0.0
    """The temperature of sub-queries; that of answers is always 0."""

    again_temperature: Temperature = 0.7
    """The temperature from which on a sub-query is drawn again that was asked before."""


class Asking(Struct, frozen=True):
    """A sub-query and its answer, as the model wrote them."""

    query: str
    answer: str


def corag(question: Question, shots: Shots, settings: CoragSettings) -> System:
    """Ask sub-queries until the path is full, each answered from what is found for it; then answer the question."""
    path: tuple[Asking, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()
    documents: tuple[Paragraph, ...] = ()
    again = False
    with Limited() as end:
        documents = paragraphs = yield from found(question.text, replace(settings.search, count=settings.documents))
        for draw in range(DRAWS * settings.queries):
            query = yield from next_query(question, path, draw if again else None, shots, settings)
            again = not query or any(query == each.query for each in path)
            if again:
                continue
            known = yield from found(query, settings.search)
            paragraphs = tuple(dict.fromkeys((*paragraphs, *known)))
            answer = yield from intermediate_answer(question, query, known, shots, settings)
            path += (Asking(query, answer),)
            if len(path) == settings.queries:
                break
        else:
            end.limit = "calls"
    text = yield from final_answer(question, path, documents, shots, settings)
    sentences = tuple(f"{each.query} {each.answer}".strip() for each in path)
    return Answer(text=text, sentences=sentences, paragraphs=paragraphs, limit=end.limit)


def next_query(
    question: Question, path: tuple[Asking, ...], drawn_again: int | None, shots: Shots, settings: CoragSettings
) -> Part[str]:
    """The next sub-query; drawn_again: the number of the draw where the one before was asked already."""
    words = worded(shots, OWN, "query", path=shown_path(path), question=Asked(question.text))
    warm = max(settings.temperature, settings.again_temperature)
    reason = Reason(
        prompt=Prompt(turns=(user(*words),)),
        max_tokens=settings.max_query_tokens,
        until="end",
        temperature=settings.temperature if drawn_again is None else warm,
        sample=drawn_again,
    )
    return bare_query((yield from text_of(reason)))


def bare_query(text: str) -> str:
    """A sub-query without the quotation marks around it and the number before it."""
    query = text.strip()
    if len(query) > 1 and query[0] == query[-1] == '"':
        query = query[1:-1]
    return _NUMBERED.sub("", query).strip()


def intermediate_answer(
    question: Question, query: str, known: tuple[Paragraph, ...], shots: Shots, settings: CoragSettings
) -> Part[str]:
    """The answer to a sub-query from what was found for it."""
    paragraphs = best_last(prompting.shown(question, known), settings)
    words = worded(shots, OWN, "intermediate", paragraphs=paragraphs, query=Asked(query))
    reason = Reason(
        prompt=Prompt(turns=(user(*words),)), max_tokens=settings.max_intermediate_tokens, until="end", temperature=0.0
    )
    return (yield from text_of(reason))


def final_answer(
    question: Question, path: tuple[Asking, ...], known: tuple[Paragraph, ...], shots: Shots, settings: CoragSettings
) -> Part[str]:
    """The answer to the question from its own paragraphs and the path."""
    words = worded(
        shots,
        OWN,
        "answer",
        paragraphs=best_last(prompting.shown(question, known), settings),
        path=shown_path(path),
        question=Asked(question.text),
    )
    prompt = Prompt(turns=(user(*words),))
    step = Read(prompt=prompt, max_tokens=settings.max_answer_tokens, until="end", temperature=0.0)
    return (yield from last_text(step))


def best_last(paragraphs: tuple[Paragraph, ...], settings: CoragSettings) -> Sequence[Shown]:
    """Paragraphs with the best one last; where not all fit, it stays longest."""
    pieces = shown(paragraphs, PARAGRAPH, settings.search)
    return [replace(each, yields=rank) for rank, each in enumerate(pieces, start=1)][::-1]


def shown_path(path: tuple[Asking, ...]) -> str:
    """The sub-queries so far and their answers, as prompts show them."""
    pairs = (
        f"Intermediate query {number}: {each.query}\nIntermediate answer {number}: {each.answer}\n"
        for number, each in enumerate(path, start=1)
    )
    return "".join(pairs) or NOTHING_YET


def step_bounds(question: Question, settings: CoragSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: four draws of each sub-query, a search and an answer for it, and the final answer."""
    queries, asked, answered = settings.queries, settings.max_query_tokens, settings.max_intermediate_tokens
    own = {name: len(words.split()) for name, words in OWN.items()}
    path = queries * (asked + answered)
    read, documents = (each * settings.search.paragraph_words for each in (settings.search.count, settings.documents))
    form = AnswerForm.PROMPT
    return (
        StepBound(kind="retrieve", times=1 + queries),
        StepBound(kind="reason", times=DRAWS * queries, output=asked, words=own["query"] + path, form=form),
        StepBound(kind="reason", times=queries, output=answered, words=own["intermediate"] + asked + read, form=form),
        StepBound(
            kind="read", times=1, output=settings.max_answer_tokens, words=own["answer"] + path + documents, form=form
        ),
    )


SPEC = SystemSpec(
    **description("corag"),
    settings=CoragSettings,
    open=corag,
    needs=always(Needs(words=OWN, corpus=True, samples=True, capabilities=frozenset({"turns"}))),
    step_bounds=step_bounds,
)
