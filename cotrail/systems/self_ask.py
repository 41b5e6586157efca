"""Self-Ask: the model asks itself follow-up questions, which a search answers (Press et al., 2022, section 4)."""

from itertools import count
from typing import Literal

from msgspec import Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Piece, Prompt, plain
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Answer, Part, System
from cotrail.systems.parts.answers import behind, lines
from cotrail.systems.parts.prompting import chosen_words, own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.searching import SearchSettings, found, shown
from cotrail.systems.parts.steps import last_text, text_of, until_stop
from cotrail.systems.spec import Needs, SystemSpec, description

OWN = own_words("self_ask")

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
    examples = chosen_words(shots, OWN, "examples")
    return Prompt(turns=(plain(*worded(shots, OWN, "ask", examples=examples, question=Asked(question.text))),))


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
    words = worded(shots, OWN, "read", paragraphs=paragraphs, question=Asked(query))
    reading = Read(prompt=Prompt(turns=(plain(*words),)), max_tokens=settings.max_answer_tokens, temperature=0.0)
    text = (yield from text_of(reading)).removesuffix(".")
    return (f" {text}.",) if text else ()


def run_needs(settings: SelfAskSettings) -> Needs:
    """A corpus, unless the model answers itself."""
    return Needs(words=OWN, corpus=settings.retrieve)


def step_bounds(question: Question, settings: SelfAskSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: each follow-up question is asked, searched for, and answered by the model at worst."""
    asked = settings.follow_ups if settings.retrieve else 0
    found_words = settings.search.most_words
    texts = 2 * asked + 2
    words = words_in(OWN) + asked * found_words + texts * settings.max_tokens
    form = AnswerForm.PROMPT
    steps: tuple[StepBound, ...] = (
        StepBound(kind="reason", times=texts, output=settings.max_tokens, words=words, form=form),
    )
    if settings.retrieve:
        steps += (StepBound(kind="retrieve", times=asked),)
    if settings.retrieve and settings.answers == "reader":
        output = settings.max_answer_tokens
        steps += (StepBound(kind="read", times=asked, output=output, words=words_in(OWN) + found_words, form=form),)
    return steps


SPEC = SystemSpec(
    **description("self-ask"), settings=SelfAskSettings, open=self_ask, needs=run_needs, step_bounds=step_bounds
)
SPECS = (SPEC,)
