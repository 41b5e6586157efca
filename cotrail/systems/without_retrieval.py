"""Prompting without retrieval: the question alone, chains of thought, and passages from memory.

Direct prompting is the first row of table 1 in Search-in-the-Chain (Xu et al., 2023). Zero-shot chain of thought is
"Let's think step by step", then the answer (Kojima et al., 2022, section 3.1). Auto-CoT has demonstrations that a model
wrote itself, of questions unlike one another (Zhang et al., 2022, section 4), which `cotrail demonstrations from-run`
builds beforehand. Recitation-augmented answers are voted by passages recited from memory, each of which is read (Sun et
al., 2023, section 3).
"""

import re
from typing import Annotated

from msgspec import Meta, Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.answer_extraction import STEP_BY_STEP
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Prompt, Written, plain, user
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, Part, System
from cotrail.faithfulness.paper import sentences
from cotrail.systems.parts.answers import behind_answer_is, lines, stated_or_all
from cotrail.systems.parts.majority import Votes, majority
from cotrail.systems.parts.prompting import PromptSettings, few_shot_prompt, instructed, own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.steps import all_of, asked_on, last_text, text_of, texts_before
from cotrail.systems.spec import Needs, SystemSpec, always, description

DIRECT = own_words("direct")
ZERO_SHOT = own_words("zero_shot_chain_of_thought")
RECITE = own_words("recite")


class DirectSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Direct prompting."""

    max_tokens: Positive = 256
    """The most tokens of the answer."""

    temperature: Temperature | None = None
    """The temperature; the run's unless given."""


def direct(question: Question, shots: Shots, settings: DirectSettings) -> System:
    """Ask the question and take what the model says."""
    prompt = Prompt(turns=(user(*worded(shots, DIRECT, "prompt", question=Asked(question.text))),))
    reading = Read(prompt=prompt, max_tokens=settings.max_tokens, until="end", temperature=settings.temperature)
    said = yield from last_text(reading)
    return Answer(text=stated_or_all(said))


class ZeroShotChainSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Zero-shot chain of thought."""

    max_chain_tokens: Positive = 256
    """The most tokens of the chain."""

    max_answer_tokens: Positive = 32
    """The most tokens of the answer that is extracted from it."""

    temperature: Temperature | None = None
    """The temperature of both; the run's unless given."""


def zero_shot_chain_of_thought(question: Question, shots: Shots, settings: ZeroShotChainSettings) -> System:
    """Have the model think step by step, and then name the answer of its chain."""
    prompt = Prompt(turns=(user(*worded(shots, ZERO_SHOT, "chain", question=Asked(question.text))),))
    chain = ""
    with Limited() as end:
        reason = Reason(
            prompt=prompt, max_tokens=settings.max_chain_tokens, until="end", temperature=settings.temperature
        )
        chain = yield from text_of(reason)
    extraction = Read(
        prompt=asked_on(prompt, chain, *worded(shots, ZERO_SHOT, "extract")),
        max_tokens=settings.max_answer_tokens,
        temperature=settings.temperature,
    )
    said = yield from last_text(extraction)
    return Answer(text=stated_or_all(said), sentences=lines(chain), limit=end.limit)


def zero_shot_bounds(question: Question, settings: ZeroShotChainSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    chain, answer, words = settings.max_chain_tokens, settings.max_answer_tokens, words_in(ZERO_SHOT)
    return (
        StepBound(kind="reason", times=1, output=chain, words=words, form=AnswerForm.PROMPT),
        StepBound(kind="read", times=1, output=answer, words=words + chain, form=AnswerForm.PROMPT),
    )


class AutoCoTSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Auto-CoT."""

    max_tokens: Positive = 256
    """The most tokens of the chain."""

    temperature: Temperature | None = None
    """The temperature; the run's unless given."""

    prompting: PromptSettings = PromptSettings()


def auto_cot(question: Question, shots: Shots, settings: AutoCoTSettings) -> System:
    """Have the model think step by step as in the demonstrations; the answer is what its chain states."""
    demonstrations = shots[AnswerForm.COT]
    prompt = few_shot_prompt(
        demonstrations=demonstrations,
        question=instructed(question.text, demonstrations.instruction),
        sentences=(STEP_BY_STEP,),
        drop=settings.prompting.drop,
        layout="qa",
    )
    reason = Reason(prompt=prompt, max_tokens=settings.max_tokens, until="chain", temperature=settings.temperature)
    chain = yield from last_text(reason)
    return Answer(text=behind_answer_is(chain) or "", sentences=sentences(chain))


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
    words = worded(shots, RECITE, "passages", question=Asked(question.text))
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
    words = worded(shots, RECITE, "read", passages=Written("\n".join(passages)), question=Asked(question.text))
    prompt = Prompt(turns=(plain(*words),))
    return Read(prompt=prompt, max_tokens=settings.max_answer_tokens, temperature=0.0)


def recite_bounds(question: Question, settings: ReciteSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: a recitation and an answer each time."""
    samples, passage, answer = settings.samples, settings.max_passage_tokens, settings.max_answer_tokens
    words, form = words_in(RECITE), AnswerForm.PROMPT
    return (
        StepBound(kind="reason", times=samples, in_turn=1, output=passage, words=words, form=form),
        StepBound(kind="read", times=samples, in_turn=1, output=answer, words=words + passage, form=form),
    )


SPECS = (
    SystemSpec(
        **description("direct"),
        settings=DirectSettings,
        open=direct,
        needs=always(Needs(words=DIRECT, capabilities=frozenset({"turns"}))),
        step_bounds=lambda _, settings: (
            StepBound(kind="read", times=1, output=settings.max_tokens, words=words_in(DIRECT), form=AnswerForm.PROMPT),
        ),
    ),
    SystemSpec(
        **description("zero-shot-chain-of-thought"),
        settings=ZeroShotChainSettings,
        open=zero_shot_chain_of_thought,
        needs=always(Needs(words=ZERO_SHOT, capabilities=frozenset({"turns"}))),
        step_bounds=zero_shot_bounds,
    ),
    SystemSpec(
        **description("auto-cot"),
        settings=AutoCoTSettings,
        open=auto_cot,
        needs=always(Needs(forms=frozenset({AnswerForm.COT}))),
        step_bounds=lambda _, settings: (
            StepBound(kind="reason", times=1, output=settings.max_tokens, form=AnswerForm.COT),
        ),
    ),
    SystemSpec(
        **description("recite"),
        settings=ReciteSettings,
        open=recite,
        needs=always(Needs(words=RECITE, samples=True)),
        step_bounds=recite_bounds,
        details=Votes,
    ),
)
