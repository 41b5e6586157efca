"""DSP: demonstrate, search in hops by queries that are sampled and fused, and vote (Khattab et al., 2022)."""

import math
from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from cotrail.common.numbers import Positive
from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import Shots
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Asked, Prompt, Written, plain
from cotrail.core.questions import Question
from cotrail.core.results import Retrieved
from cotrail.core.system import Answer, LimitReached, Part, System
from cotrail.faithfulness.sentences import sentences
from cotrail.systems.parts.majority import Votes, majority
from cotrail.systems.parts.most import Most, words_in
from cotrail.systems.parts.prompting import shown as with_pinned
from cotrail.systems.parts.searching import SearchSettings, query_words, search, shown
from cotrail.systems.parts.steps import all_of, texts_of
from cotrail.systems.parts.words import chosen_words, own_words, worded
from cotrail.systems.spec import Needs, SystemSpec

OWN = own_words("dsp")
FIELDS = {"search": "Search Query:", "predict": "Answer:"}
"""What a completion has behind its rationale."""

PARAGRAPH = "[{number}] {title} | {text}\n"
NOTHING = "N/A\n"
STOP = ("\n---", "\n\nContext:")


class DspSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """DSP, by its program for multi-hop questions."""

    search: SearchSettings = SearchSettings()
    """`count` paragraphs are kept of what the queries of a hop find together."""

    hops: Positive = 2
    """How often it is searched, each time with what was found before."""

    queries: Positive = 10
    """The number of queries that are sampled for a hop; the question is searched for too."""

    depth: Positive = 3
    """The length of each query's list, as a multiple of the paragraphs that are kept."""

    samples: Positive = 20
    """The number of answers that are sampled."""

    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.7
    """The temperature at which queries and answers are sampled."""

    max_query_tokens: Positive = 150
    """The most tokens of a rationale with its query."""

    max_answer_tokens: Positive = 150
    """The most tokens of a rationale with its answer."""


class Completion(Struct, frozen=True):
    """A sample: its rationale, and the query or the answer behind it."""

    rationale: str
    field: str


def dsp(question: Question, shots: Shots, settings: DspSettings) -> System:
    """Search in hops for queries that are sampled and fused, and take the answer that most samples give."""
    context: tuple[Paragraph, ...] = ()
    collected: tuple[Paragraph, ...] = ()
    rationale, limit, drawn = "", "", tuple[Completion, ...]()
    try:
        for hop in range(settings.hops):
            drawn = yield from completed("search", question, context, rationale, shots, settings)
            lists = yield from ranked((*(each.field for each in drawn), question.text), settings)
            context = fused(lists, settings.search.count)
            collected = tuple(dict.fromkeys((*collected, *context)))
            # What led to a later hop's queries stands before what they found.
            rationale = drawn[0].rationale if hop and drawn else ""
        drawn = yield from completed("predict", question, context, rationale, shots, settings)
    except LimitReached as reached:
        limit = reached.limit
        drawn = yield from completed("predict", question, context, rationale, shots, replace(settings, samples=1))
    votes = majority(each.field for each in drawn)
    chosen = "" if votes.chosen is None else drawn[votes.chosen].rationale
    return Answer(text=votes.winner, sentences=sentences(chosen), paragraphs=collected, details=votes, limit=limit)


def completed(
    name: Literal["search", "predict"],
    question: Question,
    context: tuple[Paragraph, ...],
    rationale: str,
    shots: Shots,
    settings: DspSettings,
) -> Part[tuple[Completion, ...]]:
    """Samples of the prompt of that name that have a query or an answer; those without one are dropped."""
    known = shown(with_pinned(question, context), PARAGRAPH, settings.search)
    words = worded(
        shots,
        OWN,
        name,
        examples=chosen_words(shots, OWN, f"{name}_examples"),
        context=(*([Written(f"{rationale}\n")] if rationale else ()), *(known or (NOTHING,))),
        question=Asked(question.text),
    )
    asked = Reason(
        prompt=Prompt(turns=(plain(*words),)),
        max_tokens=settings.max_query_tokens if name == "search" else settings.max_answer_tokens,
        until="stop",
        stop=STOP,
        temperature=settings.temperature,
    )
    number = settings.queries if name == "search" else settings.samples
    texts = yield from texts_of(replace(asked, sample=sample) for sample in range(number))
    return tuple(each for text in texts if (each := completion(text, FIELDS[name])).field)


def completion(text: str, mark: str) -> Completion:
    """The rationale of a sample and the line behind its mark."""
    rationale, _, behind = text.partition(mark)
    return Completion(" ".join(rationale.split()), behind.strip().partition("\n")[0].strip())


def ranked(queries: Iterable[str], settings: DspSettings) -> Part[tuple[Retrieved, ...]]:
    """What each different query finds, all searched for at once."""
    deep = replace(settings.search, count=settings.depth * settings.search.count)
    asked = dict.fromkeys(filter(None, map(query_words, queries)))
    return (yield from all_of((search(each, deep) for each in asked), Retrieved))


def fused(lists: Iterable[Retrieved], count: int) -> tuple[Paragraph, ...]:
    """The paragraphs with the most probability in all lists together; each list's scores become its probabilities."""
    total: dict[Paragraph, float] = {}
    for found in lists:
        highest = max((hit.score for hit in found.hits), default=0.0)
        weights = [math.exp(hit.score - highest) for hit in found.hits]
        for hit, weight in zip(found.hits, weights, strict=True):
            # Rounded, since mathematical libraries differ in the last digits.
            total[hit.paragraph] = round(total.get(hit.paragraph, 0.0) + weight / math.fsum(weights), 9)
    return tuple(sorted(total, key=total.__getitem__, reverse=True)[:count])


def needs(_: DspSettings) -> Needs:
    """Several completions of plain prompts, and a corpus."""
    return Needs(words=OWN, corpus=True, samples=True)


def most(question: Question, settings: DspSettings) -> tuple[Most, ...]:  # noqa: ARG001
    """See `SystemSpec`: the queries of a hop, and the answers, are drawn at once."""
    words, hops = words_in(OWN) + settings.search.most_words + settings.max_query_tokens, settings.hops
    queries, answers = settings.max_query_tokens, settings.max_answer_tokens
    return (
        Most(kind="reason", times=hops * settings.queries, in_turn=hops, output=queries, words=words),
        Most(kind="retrieve", times=hops * (settings.queries + 1), in_turn=hops),
        Most(kind="reason", times=settings.samples, in_turn=1, output=answers, words=words),
    )


SPECS = (
    SystemSpec(
        name="dsp",
        version=1,
        title="DSP",
        paper="Khattab et al., 2022, https://arxiv.org/abs/2212.14024",
        settings=DspSettings,
        open=dsp,
        needs=needs,
        most=most,
        details=Votes,
    ),
)
