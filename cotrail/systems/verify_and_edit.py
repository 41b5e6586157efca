"""Verify-and-Edit: where chains don't agree, one is edited by what searches find (Zhao et al., 2023, section 3)."""

import math
from typing import Annotated, Literal

from msgspec import Meta, Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.embed import Embed
from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.ports.encoders import EMBEDDER
from cotrail.core.prompts import Asked, Piece, Prompt, Shown, Written, plain
from cotrail.core.questions import Paragraph, Question, passage_of
from cotrail.core.results import Embedded, Generated
from cotrail.core.system import Answer, Part, System, expect
from cotrail.faithfulness.paper import all_sentences, sentences
from cotrail.systems.parts.answers import behind, mean_score
from cotrail.systems.parts.majority import Votes, majority, same_answer
from cotrail.systems.parts.prompting import own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.searching import SearchSettings, found
from cotrail.systems.parts.steps import all_of, in_parallel, text_of, texts_before
from cotrail.systems.spec import Needs, SystemSpec, always, description

OWN = own_words("verify_and_edit")

STATES = "The answer is"
GAP = "\n\n"
"""What stands between examples, before which a text ends."""


class VerifyAndEditSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Verify-and-Edit."""

    search: SearchSettings = SearchSettings()

    chains: Annotated[int, Meta(ge=1, le=100)] = 5
    """The chains of thought that are sampled (n)."""

    temperature: Temperature = 0.7
    """The temperature at which chains are sampled."""

    edits: Literal["unsure", "always"] = "unsure"
    """Which questions have their chain edited: those with fewer than half of the votes for an answer, or all, as the
    released code has it."""

    evidence: Positive = 3
    """The sentences found that a sentence is edited by, those most similar to the question that verifies it."""

    sentence_words: Positive = 100
    """A sentence found is cut to this many words."""

    max_chain_tokens: Positive = 144
    """The most tokens of a chain."""

    max_tokens: Positive = 70
    """The most tokens of a verifying question, of an edited sentence, and of the final answer."""


class Edited(Struct, frozen=True, kw_only=True):
    """A sentence of a chain as it was edited, and the paragraphs found for it."""

    text: str
    paragraphs: tuple[Paragraph, ...]


def verify_and_edit(question: Question, shots: Shots, settings: VerifyAndEditSettings) -> System:
    """Sample chains; where they don't agree, edit the likeliest one by what searches find, and answer from it."""
    votes = Votes(answers=())
    rationale: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()
    prompt = Prompt(turns=(plain(*worded(shots, OWN, "answer", question=Asked(question.text))),))
    with Limited() as end:
        chains = yield from sampled_chains(prompt, settings)
        votes = majority(concluded(each.text) for each in chains)
        rationale = sentences(rationale_of(likeliest(chains, votes).text))
        if settings.edits == "unsure" and votes.agree:
            return Answer(text=votes.winner, sentences=rationale, details=votes)
        edits = yield from in_parallel(edited(question, each, shots, settings) for each in rationale)
        paragraphs = tuple(dict.fromkeys(paragraph for each in edits for paragraph in each.paragraphs))
        rationale = tuple(each.text for each in edits)
        chain = [Written(f" {each}") for each in rationale]
        answer = yield from written(prompt.append(*chain, f" {STATES}"), settings)
        text = concluded(f"{STATES} {answer}")
        return Answer(text=text, sentences=rationale, paragraphs=paragraphs, details=votes)
    votes = votes if votes.answers else majority(map(concluded, texts_before(end)))
    return Answer(text=votes.winner, sentences=rationale, paragraphs=paragraphs, details=votes, limit=end.limit)


def sampled_chains(prompt: Prompt, settings: VerifyAndEditSettings) -> Part[tuple[Generated, ...]]:
    """The chains, with the probabilities of their tokens."""
    steps = (
        Reason(
            prompt=prompt,
            max_tokens=settings.max_chain_tokens,
            until="stop",
            stop=(GAP,),
            sample=number,
            temperature=settings.temperature,
            scored=True,
        )
        for number in range(settings.chains)
    )
    return (yield from all_of(steps, Generated))


def concluded(chain: str) -> str:
    """The answer that a chain states; empty where it states none."""
    return behind(chain, STATES) or ""


def rationale_of(chain: str) -> str:
    """What stands before the answer that a chain states, or all of it."""
    before, states, _ = chain.rpartition(STATES)
    return before if states else chain


def likeliest(chains: tuple[Generated, ...], votes: Votes) -> Generated:
    """The likeliest chain of those that have the answer that won, or of all where none has one.

    Of equally likely ones it is the first; one without tokens is the least likely.
    """
    voters = zip(chains, votes.answers, strict=True)
    candidates = [chain for chain, answer in voters if answer and same_answer(answer, votes.winner)]
    return max(candidates or chains, key=likelihood)


def likelihood(chain: Generated) -> float:
    """The mean log probability of a chain's tokens."""
    score = mean_score(chain, 0, len(chain.text))
    return -math.inf if score is None else score


def edited(question: Question, sentence: str, shots: Shots, settings: VerifyAndEditSettings) -> Part[Edited]:
    """A sentence as what is found for its verifying question has it; as it is where that is nothing."""
    words = worded(shots, OWN, "verify", question=Asked(question.text), sentence=sentence)
    query = yield from written(Prompt(turns=(plain(*words),)), settings)
    paragraphs = yield from found(query, settings.search)
    evidence = yield from nearest_sentences(query, paragraphs, settings)
    if not evidence:
        return Edited(text=sentence, paragraphs=paragraphs)
    context: list[str | Piece] = [
        Shown(paragraph=each, form="{text} " if number < len(evidence) else "{text}", words=settings.sentence_words)
        for number, each in enumerate(evidence, start=1)
    ]
    reading = worded(shots, OWN, "read", context=context, question=Asked(query))
    text = yield from written(Prompt(turns=(plain(*reading),)), settings)
    return Edited(text=" ".join(text.split()) or sentence, paragraphs=paragraphs)


def nearest_sentences(
    query: str, paragraphs: tuple[Paragraph, ...], settings: VerifyAndEditSettings
) -> Part[tuple[Paragraph, ...]]:
    """The sentences of these paragraphs that are most similar to the query, the best first."""
    passages = (passage_of(text, each.title) for each in paragraphs for text in all_sentences(each.text))
    candidates = tuple(dict.fromkeys(passages))
    if not candidates:
        return ()
    (row,) = expect((yield Embed(sentences=(query,), paragraphs=candidates)), Embedded).similarities
    ranked = sorted(zip(candidates, row, strict=True), key=lambda each: -each[1])
    return tuple(candidate for candidate, _ in ranked[: settings.evidence])


def written(prompt: Prompt, settings: VerifyAndEditSettings) -> Part[str]:
    """What the model writes next, stripped."""
    reason = Reason(prompt=prompt, max_tokens=settings.max_tokens, until="stop", stop=(GAP,), temperature=0.0)
    return (yield from text_of(reason)).strip()


def step_bounds(question: Question, settings: VerifyAndEditSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: a sentence has a token at least, and all are edited side by side."""
    edits, output, form = settings.max_chain_tokens, settings.max_tokens, AnswerForm.PROMPT
    words = words_in(OWN) + settings.evidence * settings.sentence_words
    chain = StepBound(kind="reason", times=settings.chains, in_turn=1, output=edits, words=words_in(OWN), form=form)
    final = StepBound(kind="reason", times=1, output=output, words=words_in(OWN) + edits * output, form=form)
    return (
        chain,
        StepBound(kind="reason", times=2 * edits, in_turn=2, output=output, words=words, form=form),
        StepBound(kind="retrieve", times=edits, in_turn=1),
        StepBound(kind="embed", times=edits, in_turn=1),
        final,
    )


SPEC = SystemSpec(
    **description("verify-and-edit"),
    settings=VerifyAndEditSettings,
    open=verify_and_edit,
    needs=always(Needs(words=OWN, corpus=True, engines=(EMBEDDER,), samples=True, capabilities=frozenset({"scores"}))),
    # All chains are alike and all are edited, as by the authors' code (`consistency.py`).
    released={"temperature": 0.0, "edits": "always"},
    step_bounds=step_bounds,
    details=Votes,
)
