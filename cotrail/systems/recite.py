"""Recitation-augmented answers: passages recited from memory, each read, and a vote (Sun et al., 2023, section 3)."""

import re
from typing import Annotated

from msgspec import Meta, Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Prompt, Written, plain
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, Part, System
from cotrail.systems.parts.answers import stated_or_all
from cotrail.systems.parts.majority import Votes, majority
from cotrail.systems.parts.prompting import own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.steps import all_of, last_text, texts_before
from cotrail.systems.spec import Needs, SystemSpec, always, description

OWN = own_words("recite")

STOP = ("\n\n\n", "\nQuestion:")
_LABEL = re.compile(r"Answer \d{1,2}:")


class ReciteSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Recitation-augmented answers."""

    samples: Annotated[int, Meta(ge=1, le=1000)] = 20
    """How often passages are recited."""

    temperature: Temperature = 0.7
    """The temperature at which they are recited. They are read at 0."""

    max_passage_tokens: Positive = 128
    """The most tokens of a recitation."""

    max_answer_tokens: Positive = 16
    """The most tokens of an answer."""


def recite(question: Question, shots: Shots, settings: ReciteSettings) -> System:
    """Recite passages that hold the answer, several times; read the answer in each; the one that most have wins.

    A recitation without passages is read too.
    """
    recited: tuple[tuple[str, ...], ...] = ()
    with Limited() as end:
        recited = yield from recitations(question, shots, settings)
        readings = (answering(question, passages, shots, settings) for passages in recited)
        answers = tuple(each.text for each in (yield from all_of(readings, Generated)))
    if end.limit:
        recited = tuple(filter(None, recited or map(passages_of, texts_before(end))))
        last = answering(question, recited[0] if recited else (), shots, settings)
        answers = ((yield from last_text(last)),)
    votes = majority(map(stated_or_all, answers), tie="shorter")
    behind_it = recited[votes.chosen] if recited and votes.chosen is not None else ()
    return Answer(text=votes.winner, sentences=behind_it, details=votes, limit=end.limit)


def recitations(question: Question, shots: Shots, settings: ReciteSettings) -> Part[tuple[tuple[str, ...], ...]]:
    """The passages of each sample."""
    words = worded(shots, OWN, "passages", question=Asked(question.text))
    reciting = (
        Reason(
            prompt=Prompt(turns=(plain(*words),)),
            max_tokens=settings.max_passage_tokens,
            until="stop",
            stop=STOP,
            temperature=settings.temperature,
            sample=number,
        )
        for number in range(settings.samples)
    )
    return tuple(passages_of(each.text) for each in (yield from all_of(reciting, Generated)))


def passages_of(text: str) -> tuple[str, ...]:
    """The passages of a recitation, one a line, without the labels before them."""
    lines = (_LABEL.sub("", line, count=1).strip() for line in text.splitlines())
    return tuple(filter(None, lines))


def answering(question: Question, passages: tuple[str, ...], shots: Shots, settings: ReciteSettings) -> Read:
    """The likeliest answer by these passages."""
    words = worded(shots, OWN, "read", passages=Written("\n".join(passages)), question=Asked(question.text))
    prompt = Prompt(turns=(plain(*words),))
    return Read(prompt=prompt, max_tokens=settings.max_answer_tokens, temperature=0.0)


def step_bounds(question: Question, settings: ReciteSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: a recitation and an answer each time."""
    samples, passage, answer = settings.samples, settings.max_passage_tokens, settings.max_answer_tokens
    words, form = words_in(OWN), AnswerForm.PROMPT
    return (
        StepBound(kind="reason", times=samples, in_turn=1, output=passage, words=words, form=form),
        StepBound(kind="read", times=samples, in_turn=1, output=answer, words=words + passage, form=form),
    )


SPEC = SystemSpec(
    **description("recite"),
    settings=ReciteSettings,
    open=recite,
    needs=always(Needs(words=OWN, samples=True)),
    step_bounds=step_bounds,
    details=Votes,
)
SPECS = (SPEC,)
