"""Demonstrate-Search-Predict: the multi-hop program with fused queries (Khattab et al., 2022, sections 2 and 3.2)."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Piece, Prompt, plain
from cotrail.core.questions import Hit, Paragraph, Question
from cotrail.core.results import Generated, Retrieved
from cotrail.core.system import Answer, Part, System
from cotrail.systems.parts import prompting
from cotrail.systems.parts.majority import Votes, majority
from cotrail.systems.parts.prompting import own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.searching import SearchSettings, query_words, search, shown
from cotrail.systems.parts.steps import all_of, last_text, until_stop
from cotrail.systems.spec import Needs, SystemSpec, always, description

OWN = own_words("dsp")

QUERY, ANSWER = "Search Query:", "Answer:"
FURTHER = ("\n---", "\nContext:", "\nQuestion:")
"""Where the model begins a further example."""

DEPTH = 3
"""How many times as many paragraphs each query finds as are kept of all (`retrieveEnsemble`)."""

DIGITS = 9
"""The digits of probabilities that decide, since mathematical libraries differ in the last ones."""


class DSPSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Demonstrate-Search-Predict."""

    search: SearchSettings = SearchSettings(count=5)

    hops: Positive = 2
    """The rounds of searches."""

    queries: Annotated[int, Meta(ge=1, le=100)] = 10
    """The queries that are sampled a hop; the question is one more."""

    predictions: Annotated[int, Meta(ge=1, le=100)] = 20
    """The answers that are sampled, and vote."""

    temperature: Temperature = 0.7
    """The temperature at which queries and answers are sampled."""

    max_tokens: Positive = 150
    """The most tokens of a rationale and its query or answer."""


class Completion(Struct, frozen=True, kw_only=True):
    """What the model wrote in both of a prompt's last fields: a rationale, and a query or an answer."""

    rationale: str
    value: str


def dsp(question: Question, shots: Shots, settings: DSPSettings) -> System:
    """Search in hops, each with several sampled queries at once, then have sampled answers vote."""
    summary = ""
    known: tuple[Paragraph, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()
    with Limited() as end:
        for hop in range(settings.hops):
            name = "next_query" if hop else "first_query"
            prompt = prompt_of(name, question, summary, known, shots, settings)
            written = yield from sampled_completions(prompt, QUERY, settings.queries, settings)
            known = yield from fused((*(each.value for each in written), question.text), settings)
            paragraphs = tuple(dict.fromkeys((*paragraphs, *known)))
            # The passages of a hop give way to those of the next one; what was learned from them stays.
            summary = written[0].rationale if hop and written else ""
        prompt = prompt_of("answer", question, summary, known, shots, settings)
        predicted = yield from sampled_completions(prompt, ANSWER, settings.predictions, settings)
    if end.limit:
        prompt = prompt_of("answer", question, summary, known, shots, settings)
        single = replace(generation(prompt, settings), temperature=0.0)
        predicted = completions([(yield from last_text(single))], ANSWER)
    votes = majority(each.value for each in predicted)
    sentences = () if votes.chosen is None else tuple(filter(None, (predicted[votes.chosen].rationale,)))
    return Answer(text=votes.winner, sentences=sentences, paragraphs=paragraphs, details=votes, limit=end.limit)


def prompt_of(
    name: str, question: Question, summary: str, known: tuple[Paragraph, ...], shots: Shots, settings: DSPSettings
) -> Prompt:
    """A prompt of the program; the context has what was learned so far, and below it the passages found last."""
    passages = shown(prompting.shown(question, known), "[{number}] {title} | {text}\n", settings.search)
    context: list[str | Piece] = [*([f"{summary}\n"] if summary else []), *passages]
    return Prompt(turns=(plain(*worded(shots, OWN, name, context=context, question=Asked(question.text))),))


def generation(prompt: Prompt, settings: DSPSettings) -> Reason:
    """The generation of a prompt's last fields."""
    return until_stop(prompt, FURTHER, settings)


def sampled_completions(prompt: Prompt, field: str, count: int, settings: DSPSettings) -> Part[tuple[Completion, ...]]:
    """So many samples of a prompt's last fields, without those that lack the last one."""
    step = generation(prompt, settings)
    written = yield from all_of((replace(step, sample=number) for number in range(count)), Generated)
    return completions([each.text for each in written], field)


def completions(texts: Sequence[str], field: str) -> tuple[Completion, ...]:
    """The texts as completions; one without the last field, or with nothing in it, is none."""
    parts = (text.partition(field) for text in texts)
    read = ((rationale.strip(), value.strip().partition("\n")[0].strip()) for rationale, _, value in parts)
    return tuple(Completion(rationale=rationale, value=value) for rationale, value in read if value)


def fused(queries: Sequence[str], settings: DSPSettings) -> Part[tuple[Paragraph, ...]]:
    """The paragraphs with the highest sums of probabilities in what all queries find, a query as often as it is there.

    Equally probable ones stay in the order in which they were found first.
    """
    wanted = Counter(words for each in queries if (words := query_words(each)))
    deep = replace(settings.search, count=DEPTH * settings.search.count)
    results = yield from all_of((search(each, deep) for each in wanted), Retrieved)
    sums: dict[Paragraph, float] = {}
    for times, result in zip(wanted.values(), results, strict=True):
        for hit, probability in zip(result.hits, probabilities(result.hits), strict=True):
            sums[hit.paragraph] = sums.get(hit.paragraph, 0.0) + times * probability
    ranked = sorted(sums, key=lambda each: round(-sums[each], DIGITS))
    return tuple(ranked[: settings.search.count])


def probabilities(hits: Sequence[Hit]) -> tuple[float, ...]:
    """The softmax of the scores of a search's hits."""
    highest = max((hit.score for hit in hits), default=0.0)
    weights = [math.exp(hit.score - highest) for hit in hits]
    return tuple(each / math.fsum(weights) for each in weights)


def step_bounds(question: Question, settings: DSPSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: the samples of a hop are written side by side, as are its searches."""
    hops, queries = settings.hops, settings.queries
    words = words_in(OWN) + settings.search.most_words + settings.max_tokens
    output, form = settings.max_tokens, AnswerForm.PROMPT
    return (
        StepBound(kind="reason", times=hops * queries, in_turn=hops, output=output, words=words, form=form),
        StepBound(kind="retrieve", times=hops * (queries + 1), in_turn=hops),
        StepBound(kind="reason", times=settings.predictions, in_turn=1, output=output, words=words, form=form),
    )


SPEC = SystemSpec(
    **description("dsp"),
    settings=DSPSettings,
    open=dsp,
    needs=always(Needs(words=OWN, corpus=True, samples=True)),
    step_bounds=step_bounds,
    details=Votes,
)
