"""Sub-questions that a model asks itself: Least-to-Most prompting and Self-Ask.

Least-to-Most prompting answers them one after another, each with those before it (Zhou et al., 2022). In Self-Ask they
are follow-up questions, which a search answers (Press et al., 2022, section 4).
"""

from itertools import count
from typing import Literal

from msgspec import Struct

from cotrail.common.answer_normalization import normalized
from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Piece, Prompt, plain
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Answer, Part, System
from cotrail.systems.parts.answers import behind, lines, stated_or_all, sub_questions
from cotrail.systems.parts.prompting import chosen_words, own_words, pinned_paragraph, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.searching import SearchSettings, found, shown
from cotrail.systems.parts.steps import last_text, text_of, until_stop
from cotrail.systems.spec import Needs, SystemSpec, description

LEAST_TO_MOST = own_words("least_to_most")
SELF_ASK = own_words("self_ask")

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
    prompt = Prompt(turns=(plain(*worded(shots, LEAST_TO_MOST, "solve"), "\n"),))
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
    words = worded(shots, LEAST_TO_MOST, "decompose", question=Asked(question.text))
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


def least_to_most_bounds(question: Question, settings: LeastToMostSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: a plan, and an answer to each sub-question and to the question."""
    asked, answer = settings.sub_questions + 1, settings.max_answer_tokens
    # Each prompt has the sub-questions, which the plan holds, and the answers so far.
    own, form = words_in(LEAST_TO_MOST), AnswerForm.PROMPT
    words = own + settings.max_plan_tokens + asked * answer
    words += asked * settings.search.most_words if settings.retrieve else 0
    return (
        *([StepBound(kind="retrieve", times=asked)] if settings.retrieve else []),
        StepBound(kind="reason", times=1, output=settings.max_plan_tokens, words=own, form=form),
        StepBound(kind="reason", times=asked, output=answer, words=words, form=form),
    )


FOLLOW_UP, INTERMEDIATE, FINAL = "Follow up:", "\nIntermediate answer:", "So the final answer is:"
NEXT_QUESTION = "\nQuestion:"


class SelfAskSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Self-Ask."""

    retrieve: bool = True
    """Whether a search answers the follow-up questions; otherwise the model answers them itself, in one text."""

    answers: Literal["passages", "reader"] = "passages"
    """What stands as an intermediate answer: the `passages` found, or what a `reader`, the same model, reads in
    them."""

    search: SearchSettings = SearchSettings(count=1)

    follow_ups: Positive = 5
    """The most follow-up questions that are searched for."""

    max_tokens: Positive = 256
    """The most tokens that the model writes at a time."""

    max_answer_tokens: Positive = 32
    """The most tokens that a reader writes."""

    temperature: Temperature = 0.0
    """The temperature of all that the model writes."""


def self_ask(question: Question, shots: Shots, settings: SelfAskSettings) -> System:
    """Have the model ask itself what it has to know, and a search answer, until it states the final answer."""
    prompt = opening(question, shots)
    sentences: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()
    said = ""
    stop = (INTERMEDIATE, NEXT_QUESTION) if settings.retrieve else (NEXT_QUESTION,)
    with Limited() as end:
        for asked in count():
            said = yield from write(prompt, stop, settings)
            prompt, sentences = prompt.wrote(said), (*sentences, *lines(said))
            query = follow_up(said) if settings.retrieve else ""
            if not query:
                break
            if asked == settings.follow_ups:
                end.limit = "searches"
                break
            known = yield from found(query, settings.search)
            paragraphs = tuple(dict.fromkeys((*paragraphs, *known)))
            found_answer = yield from intermediate_answer(
                query, known, shots, settings, yields=settings.follow_ups - asked
            )
            # Where the search has no answer, the model has.
            prompt = prompt.append(INTERMEDIATE, *found_answer)
            if not found_answer:
                own = yield from write(prompt, (f"\n{FOLLOW_UP}", f"\n{FINAL}", NEXT_QUESTION), settings)
                prompt = prompt.wrote(own)
    if FINAL not in said:
        ending = prompt.append(f"\n{FINAL}")
        reason = Reason(prompt=ending, max_tokens=settings.max_tokens, until="line", temperature=settings.temperature)
        said = f"{FINAL} {(yield from last_text(reason))}"
        sentences += lines(said)
    return Answer(text=behind(said, FINAL) or "", sentences=sentences, paragraphs=paragraphs, limit=end.limit)


def opening(question: Question, shots: Shots) -> Prompt:
    """The examples and the question."""
    examples = chosen_words(shots, SELF_ASK, "examples")
    return Prompt(turns=(plain(*worded(shots, SELF_ASK, "ask", examples=examples, question=Asked(question.text))),))


def write(prompt: Prompt, stop: tuple[str, ...], settings: SelfAskSettings) -> Part[str]:
    """What the model writes up to one of these strings."""
    return (yield from text_of(until_stop(prompt, stop, settings)))


def follow_up(said: str) -> str:
    """The follow-up question that the last line of a text asks; empty where it asks none."""
    return lines(said)[-1].partition(FOLLOW_UP)[2].strip() if lines(said) else ""


def intermediate_answer(
    query: str, known: tuple[Paragraph, ...], shots: Shots, settings: SelfAskSettings, *, yields: int
) -> Part[tuple[str | Piece, ...]]:
    """How what was found answers a follow-up question; nothing where it doesn't.

    yields: the paragraphs found last stay longest where not all fit.
    """
    if settings.answers == "passages" or not known:
        return shown(known, " {title}: {text}", settings.search, yields)
    paragraphs = shown(known, "{title}\n{text}\n\n", settings.search)
    words = worded(shots, SELF_ASK, "read", paragraphs=paragraphs, question=Asked(query))
    reading = Read(prompt=Prompt(turns=(plain(*words),)), max_tokens=settings.max_answer_tokens, temperature=0.0)
    text = (yield from text_of(reading)).removesuffix(".")
    return (f" {text}.",) if text else ()


def run_needs(settings: SelfAskSettings) -> Needs:
    """A corpus, unless the model answers itself."""
    return Needs(words=SELF_ASK, corpus=settings.retrieve)


def self_ask_bounds(question: Question, settings: SelfAskSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: each follow-up question is asked, searched for, and answered by the model at worst."""
    asked = settings.follow_ups if settings.retrieve else 0
    own, found_words = words_in(SELF_ASK), settings.search.most_words
    texts = 2 * asked + 2
    words = own + asked * found_words + texts * settings.max_tokens
    form = AnswerForm.PROMPT
    steps: tuple[StepBound, ...] = (
        StepBound(kind="reason", times=texts, output=settings.max_tokens, words=words, form=form),
    )
    if settings.retrieve:
        steps += (StepBound(kind="retrieve", times=asked),)
    if settings.retrieve and settings.answers == "reader":
        output = settings.max_answer_tokens
        steps += (StepBound(kind="read", times=asked, output=output, words=own + found_words, form=form),)
    return steps


SPECS = (
    SystemSpec(
        **description("least-to-most"),
        settings=LeastToMostSettings,
        open=least_to_most,
        needs=lambda settings: Needs(words=LEAST_TO_MOST, corpus=settings.retrieve),
        step_bounds=least_to_most_bounds,
    ),
    SystemSpec(
        **description("self-ask"), settings=SelfAskSettings, open=self_ask, needs=run_needs, step_bounds=self_ask_bounds
    ),
)
