"""ITER-RETGEN: what was written in one round is searched for in the next (Shao et al., 2023, section 3)."""

from msgspec import Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Prompt, plain
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Answer, System
from cotrail.faithfulness.paper import sentences
from cotrail.systems.parts import prompting
from cotrail.systems.parts.answers import behind_answer_is
from cotrail.systems.parts.prompting import chosen_words, own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.searching import SearchSettings, found, shown
from cotrail.systems.parts.steps import text_of, until_stop
from cotrail.systems.spec import Needs, SystemSpec, always, description

OWN = own_words("iter_retgen")

PARAGRAPH = "Paragraph {number}: {title}\n{text}\n\n"
FURTHER_EXAMPLE = "\nQuestion:"


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
    words = worded(
        shots,
        OWN,
        "answer",
        examples=chosen_words(shots, OWN, "examples"),
        paragraphs=shown(prompting.shown(question, known), PARAGRAPH, settings.search),
        question=Asked(question.text),
    )
    return until_stop(Prompt(turns=(plain(*words),)), (FURTHER_EXAMPLE,), settings)


def step_bounds(question: Question, settings: IterRetGenSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: every round has a search and a chain."""
    rounds = settings.rounds
    words = settings.search.most_words + words_in(OWN)
    chains = StepBound(kind="reason", times=rounds, output=settings.max_tokens, words=words, form=AnswerForm.PROMPT)
    return (StepBound(kind="retrieve", times=rounds), chains)


SPEC = SystemSpec(
    **description("iter-retgen"),
    settings=IterRetGenSettings,
    open=iter_retgen,
    needs=always(Needs(words=OWN, corpus=True)),
    step_bounds=step_bounds,
)
SPECS = (SPEC,)
