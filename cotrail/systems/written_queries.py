"""What a model writes is searched for: FLARE-direct and ITER-RETGEN.

FLARE-direct searches for a sentence before it is kept, where the model is unsure of it (Jiang et al., 2023).
ITER-RETGEN searches in a round for what was written in the one before (Shao et al., 2023, section 3).
"""

import math
from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Reason
from cotrail.core.answer_extraction import stated_answer
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Piece, Prompt, Shown, Written, plain
from cotrail.core.questions import Paragraph, Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, Part, System, expect
from cotrail.faithfulness.paper import sentences
from cotrail.systems.parts import prompting
from cotrail.systems.parts.answers import behind_answer_is
from cotrail.systems.parts.prompting import chosen_words, own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.searching import SearchSettings, found, shown
from cotrail.systems.parts.steps import text_of, until_stop
from cotrail.systems.spec import Needs, SystemSpec, always, description

FLARE, ITER_RETGEN = own_words("flare"), own_words("iter_retgen")

FLARE_PARAGRAPH = "[{number}] {title}\n{text}\n\n"
ITER_RETGEN_PARAGRAPH = "Paragraph {number}: {title}\n{text}\n\n"
FURTHER_EXAMPLE = "\nQuestion:"

Probability = Annotated[float, Meta(ge=0, le=1)]


class FlareSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """FLARE-direct."""

    search: SearchSettings = SearchSettings(count=2)

    theta: Probability = 0.8
    """A sentence with a token of this probability or less is searched for, and written again."""

    beta: Probability = 0.4
    """Tokens of this probability or less are left out of the query; with 0 all of the sentence is searched for."""

    rewrite: bool = False
    """Whether a sentence that isn't searched for is written again too, as in the released code. Without sampling it
    becomes the same again."""

    answers: Literal["stated", "whole"] = "stated"
    """The answer: what a sentence states, which then is the last one; or the `whole` text, for questions that are
    answered at length."""

    max_sentence_tokens: Positive = 64
    """The most tokens of a sentence."""

    max_tokens: Positive = 256
    """The most tokens of all sentences together."""

    temperature: Temperature | None = None
    """The temperature; the run's unless given."""


def flare(question: Question, shots: Shots, settings: FlareSettings) -> System:
    """Write sentence after sentence, and those that the model is unsure of again, with what a search for them finds."""
    sentences: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()
    left = settings.max_tokens
    with Limited() as end:
        paragraphs = known = yield from found(question.text, settings.search)
        while True:
            chain = chain_prompt(question, known, sentences, shots, settings)
            sentence = yield from write(chain, left, settings)
            query = unsure_query(sentence, settings)
            if query:
                known = yield from found(query, settings.search)
                paragraphs = tuple(dict.fromkeys((*paragraphs, *known)))
                chain = chain_prompt(question, known, sentences, shots, settings)
            if query or settings.rewrite:
                sentence = yield from write(chain, left, settings)
            if not sentence.text:
                break
            sentences += (sentence.text,)
            if settings.answers == "stated" and stated_answer(sentence.text) is not None:
                break
            left -= max(1, len(sentence.kept_tokens))
            if left <= 0:
                end.limit = "tokens"
                break
    return Answer(text=answer_of(sentences, settings), sentences=sentences, paragraphs=paragraphs, limit=end.limit)


def chain_prompt(
    question: Question, known: tuple[Paragraph, ...], sentences: tuple[str, ...], shots: Shots, settings: FlareSettings
) -> Prompt:
    """What was found last, the question, and what was written of its answer."""
    pieces = shown(prompting.shown(question, known), FLARE_PARAGRAPH, settings.search)
    words = answer_words(shots, FLARE, question, pieces)
    return Prompt(turns=(plain(*words, *(Written(f" {each}") for each in sentences)),))


def write(prompt: Prompt, left: int, settings: FlareSettings) -> Part[Generated]:
    """The next sentence, with its tokens; left: those that the answer may still have."""
    reason = Reason(
        prompt=prompt, max_tokens=min(settings.max_sentence_tokens, left), temperature=settings.temperature, scored=True
    )
    return expect((yield reason), Generated)


def unsure_query(draft: Generated, settings: FlareSettings) -> str:
    """The query for a sentence: its tokens but those least sure; empty where the model is sure of all of them.

    Of a token as likely as `theta` it isn't sure, and one as likely as `beta` is left out, as in the released code.
    """
    tokens, unsure, unlikely = draft.kept_tokens, _log(settings.theta), _log(settings.beta)
    if all(score > unsure for _, score in tokens):
        return ""
    return "".join(text if score > unlikely else " " for text, score in tokens).strip()


def _log(probability: float) -> float:
    return math.log(probability) if probability else -math.inf


def answer_of(sentences: tuple[str, ...], settings: FlareSettings) -> str:
    """What the last sentence states, or all of them, by the settings; empty where it states nothing."""
    if settings.answers == "whole":
        return " ".join(sentences)
    return (stated_answer(sentences[-1]) or "") if sentences else ""


def flare_bounds(question: Question, settings: FlareSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: a sentence has a token at least, and is searched for and written twice at most."""
    sentences = settings.max_tokens
    words = settings.search.most_words + settings.max_tokens + words_in(FLARE)
    output = settings.max_sentence_tokens
    return (
        StepBound(kind="retrieve", times=1 + sentences),
        StepBound(kind="reason", times=2 * sentences, output=output, words=words, form=AnswerForm.PROMPT),
    )


class IterRetGenSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ITER-RETGEN."""

    search: SearchSettings = SearchSettings()

    rounds: Positive = 2
    """How often it is searched and answered (T); the paper recommends 2."""

    max_tokens: Positive = 256
    """The most tokens of a round's chain of thought."""

    temperature: Temperature | None = None
    """The temperature; the run's unless given."""


def iter_retgen(question: Question, shots: Shots, settings: IterRetGenSettings) -> System:
    """Search and answer in rounds, each with the question and what the round before wrote; the last answer counts."""
    chain = ""
    paragraphs: tuple[Paragraph, ...] = ()
    with Limited() as end:
        for _ in range(settings.rounds):
            # The question first: of long queries the end isn't searched for.
            known = yield from found(f"{question.text} {chain}", settings.search)
            paragraphs = tuple(dict.fromkeys((*paragraphs, *known)))
            chain = (yield from text_of(answering(question, known, shots, settings))).strip()
    return Answer(
        text=behind_answer_is(chain) or "", sentences=sentences(chain), paragraphs=paragraphs, limit=end.limit
    )


def answering(question: Question, known: tuple[Paragraph, ...], shots: Shots, settings: IterRetGenSettings) -> Reason:
    """A chain of thought that ends in the answer, given what this round found and nothing else."""
    pieces = shown(prompting.shown(question, known), ITER_RETGEN_PARAGRAPH, settings.search)
    words = answer_words(shots, ITER_RETGEN, question, pieces)
    return until_stop(Prompt(turns=(plain(*words),)), (FURTHER_EXAMPLE,), settings)


def iter_retgen_bounds(question: Question, settings: IterRetGenSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: every round has a search and a chain."""
    rounds = settings.rounds
    words = settings.search.most_words + words_in(ITER_RETGEN)
    chains = StepBound(kind="reason", times=rounds, output=settings.max_tokens, words=words, form=AnswerForm.PROMPT)
    return (StepBound(kind="retrieve", times=rounds), chains)


def answer_words(
    shots: Shots, own: Mapping[str, str], question: Question, paragraphs: tuple[Shown, ...]
) -> tuple[str | Piece, ...]:
    """The prompt of an answer: examples, what was found last, and the question."""
    examples = chosen_words(shots, own, "examples")
    return worded(shots, own, "answer", examples=examples, paragraphs=paragraphs, question=Asked(question.text))


SPECS = (
    SystemSpec(
        **description("flare"),
        settings=FlareSettings,
        open=flare,
        needs=always(Needs(words=FLARE, corpus=True, capabilities=frozenset({"scores"}))),
        # Sentences are written as by the authors' code (`openai_api.py`).
        released={"rewrite": True},
        step_bounds=flare_bounds,
    ),
    SystemSpec(
        **description("iter-retgen"),
        settings=IterRetGenSettings,
        open=iter_retgen,
        needs=always(Needs(words=ITER_RETGEN, corpus=True)),
        step_bounds=iter_retgen_bounds,
    ),
)
