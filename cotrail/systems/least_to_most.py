"""Least-to-Most prompting: sub-questions answered one after another, each with those before it (Zhou et al., 2022)."""

from msgspec import Struct

from cotrail.common.answer_normalization import normalized
from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Prompt, plain
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Answer, Part, System
from cotrail.systems.parts.answers import stated_or_all, sub_questions
from cotrail.systems.parts.prompting import own_words, pinned_paragraph, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.searching import SearchSettings, found, shown
from cotrail.systems.parts.steps import last_text, text_of
from cotrail.systems.spec import Needs, SystemSpec, description

OWN = own_words("least_to_most")

PARAGRAPH = "{title}: {text}\n"


class LeastToMostSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Least-to-Most prompting."""

    retrieve: bool = False
    """Whether paragraphs are searched for with each sub-question. The published method searches for none."""

    search: SearchSettings = SearchSettings()

    sub_questions: Positive = 8
    """Sub-questions, at most, before the question itself."""

    max_plan_tokens: Positive = 256
    """The most tokens of the decomposition."""

    max_answer_tokens: Positive = 64
    """The most tokens of each answer."""

    temperature: Temperature | None = None
    """The temperature; the run's unless given."""


def least_to_most(question: Question, shots: Shots, settings: LeastToMostSettings) -> System:
    """Decompose the question, then answer its sub-questions and at last itself, each with all answers before it."""
    prompt = Prompt(turns=(plain(*worded(shots, OWN, "solve"), "\n"),))
    answers: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()
    with Limited() as end:
        for asked in (yield from decomposed(question, shots, settings)):
            known = yield from looked_up(asked, question, settings)
            paragraphs = tuple(dict.fromkeys((*paragraphs, *known)))
            asking = asking_for(asked, prompt, known, settings)
            said = yield from text_of(answering(asking, settings))
            prompt, answers = asking.wrote(f" {said}"), (*answers, said)
    if end.limit:
        asking = asking_for(question.text, prompt, (), settings)
        answers += ((yield from last_text(answering(asking, settings))),)
    return Answer(
        text=stated_or_all(answers[-1]), sentences=tuple(filter(None, answers)), paragraphs=paragraphs, limit=end.limit
    )


def decomposed(question: Question, shots: Shots, settings: LeastToMostSettings) -> Part[tuple[str, ...]]:
    """The sub-questions in their order, the question itself as the last one."""
    words = worded(shots, OWN, "decompose", question=Asked(question.text))
    prompt = Prompt(turns=(plain(*words),))
    reason = Reason(prompt=prompt, max_tokens=settings.max_plan_tokens, until="chain", temperature=settings.temperature)
    asked = sub_questions((yield from text_of(reason)), settings.sub_questions)
    before = tuple(each for each in asked if normalized(each) != normalized(question.text))
    return (*before, question.text)


def looked_up(asked: str, question: Question, settings: LeastToMostSettings) -> Part[tuple[Paragraph, ...]]:
    """What is shown before a sub-question: the passage that the question pins, if any, and what a search finds."""
    if not settings.retrieve:
        return ()
    pinned = pinned_paragraph(question)
    known = yield from found(asked, settings.search)
    return known if pinned is None or pinned in known else (pinned, *known)


def asking_for(asked: str, prompt: Prompt, known: tuple[Paragraph, ...], settings: LeastToMostSettings) -> Prompt:
    """The questions and answers so far, and the next question."""
    return prompt.append("\n", *shown(known, PARAGRAPH, settings.search), Asked(asked, "Q: {question}\nA:"))


def answering(prompt: Prompt, settings: LeastToMostSettings) -> Reason:
    """The answer to the prompt's last question."""
    return Reason(prompt=prompt, max_tokens=settings.max_answer_tokens, until="line", temperature=settings.temperature)


def step_bounds(question: Question, settings: LeastToMostSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: a plan, and an answer to each sub-question and to the question."""
    asked, answer = settings.sub_questions + 1, settings.max_answer_tokens
    # Each prompt has the sub-questions, which the plan holds, and the answers so far.
    words = words_in(OWN) + settings.max_plan_tokens + asked * answer
    words += asked * settings.search.most_words if settings.retrieve else 0
    return (
        *([StepBound(kind="retrieve", times=asked)] if settings.retrieve else []),
        StepBound(kind="reason", times=1, output=settings.max_plan_tokens, words=words_in(OWN), form=AnswerForm.PROMPT),
        StepBound(kind="reason", times=asked, output=answer, words=words, form=AnswerForm.PROMPT),
    )


SPEC = SystemSpec(
    **description("least-to-most"),
    settings=LeastToMostSettings,
    open=least_to_most,
    needs=lambda settings: Needs(words=OWN, corpus=settings.retrieve),
    step_bounds=step_bounds,
)
SPECS = (SPEC,)
