"""FLARE-direct: search for a sentence before it is kept, where the model is unsure of it (Jiang et al., 2023)."""

import math
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Reason
from cotrail.core.answer_extraction import stated_answer
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Prompt, Written, plain
from cotrail.core.questions import Paragraph, Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, Part, System, expect
from cotrail.systems.parts import prompting
from cotrail.systems.parts.prompting import chosen_words, own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound
from cotrail.systems.parts.searching import SearchSettings, found, shown
from cotrail.systems.spec import Needs, SystemSpec, always, description

OWN = own_words("flare")

PARAGRAPH = "[{number}] {title}\n{text}\n\n"

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
    words = worded(
        shots,
        OWN,
        "answer",
        examples=chosen_words(shots, OWN, "examples"),
        paragraphs=shown(prompting.shown(question, known), PARAGRAPH, settings.search),
        question=Asked(question.text),
    )
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


def step_bounds(question: Question, settings: FlareSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: a sentence has a token at least, and is searched for and written twice at most."""
    sentences = settings.max_tokens
    words = settings.search.most_words + settings.max_tokens
    words += sum(len(each.split()) for each in OWN.values())
    output = settings.max_sentence_tokens
    return (
        StepBound(kind="retrieve", times=1 + sentences),
        StepBound(kind="reason", times=2 * sentences, output=output, words=words, form=AnswerForm.PROMPT),
    )


def released(*, instructed: bool) -> dict[str, Any]:  # noqa: ARG001 - see `Released`
    """The settings by which sentences are written as by the authors' code (`openai_api.py`)."""
    return {"rewrite": True}


SPEC = SystemSpec(
    **description("flare"),
    settings=FlareSettings,
    open=flare,
    needs=always(Needs(words=OWN, corpus=True, capabilities=frozenset({"scores"}))),
    released=released,
    step_bounds=step_bounds,
)
SPECS = (SPEC,)
