"""Searches called within a text, as Toolformer's are (Schick et al., 2023), by a model that is shown four examples.

It is the baseline of Search-in-the-Chain (table 1 and its footnote 4), whose model isn't trained to call tools.
"""

import re

from msgspec import Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Prompt, plain
from cotrail.core.questions import Paragraph, Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, Part, System, expect
from cotrail.systems.parts.answers import behind_answer_is
from cotrail.systems.parts.prompting import chosen_words, own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.searching import SearchSettings, found, shown
from cotrail.systems.parts.steps import until_stop
from cotrail.systems.spec import Needs, SystemSpec, always, description

OWN = own_words("toolformer")

OPENED, CLOSED = '[Search("', '")]'
NEXT_QUESTION = "\nQuestion:"
_ESCAPED = re.compile(r"\\([\"\\])")


class ToolformerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Searches called within a text."""

    search: SearchSettings = SearchSettings(count=1)

    searches: Positive = 5
    """The most calls; a further one ends the text."""

    max_tokens: Positive = 256
    """The most tokens that the model writes at a time."""

    temperature: Temperature = 0.0
    """The temperature of all that the model writes."""


def toolformer(question: Question, shots: Shots, settings: ToolformerSettings) -> System:
    """Have the model write its answer, and put behind each search that it calls what that finds."""
    examples = chosen_words(shots, OWN, "examples")
    words = worded(shots, OWN, "ask", examples=examples, question=Asked(question.text))
    prompt = Prompt(turns=(plain(*words),))
    texts: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()
    with Limited() as end:
        for left in range(settings.searches, -1, -1):
            written = yield from write(prompt, settings)
            text, query = called(written)
            texts += (text.strip(),)
            if query is None:
                break
            if not left:
                end.limit = "searches"
                break
            known = yield from found(_ESCAPED.sub(r"\1", query), settings.search)
            paragraphs = tuple(dict.fromkeys((*paragraphs, *known)))
            # What was found last stays longest where not all fits.
            result = shown(known, " {title}: {text}", settings.search, yields=left)
            prompt = prompt.wrote(f"{written.text}{CLOSED}").append(" →", *result, "\n")
    return Answer(
        text=answer_of(texts, end.limit), sentences=tuple(filter(None, texts)), paragraphs=paragraphs, limit=end.limit
    )


def write(prompt: Prompt, settings: ToolformerSettings) -> Part[Generated]:
    """What the model writes up to the end of a call, or to its own."""
    stop = (CLOSED, NEXT_QUESTION)
    return expect((yield until_stop(prompt, stop, settings)), Generated)


def called(written: Generated) -> tuple[str, str | None]:
    """A text before the search that it calls at its end, and the query; None where it calls none."""
    before, is_call, query = written.text.rpartition(OPENED)
    return (before, query) if is_call and written.stop == CLOSED else (written.text, None)


def answer_of(texts: tuple[str, ...], limit: str) -> str:
    """What the last text states as the answer, or else all of it, if the model ended it and no limit did."""
    last = texts[-1] if texts else ""
    answer = behind_answer_is(last)
    if answer is None:
        return "" if limit else last.removesuffix(".").rstrip()
    return answer


def step_bounds(question: Question, settings: ToolformerSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: a text before each search, and one behind the last."""
    texts, found_words = settings.searches + 1, settings.search.most_words
    words = words_in(OWN) + texts * settings.max_tokens + settings.searches * found_words
    return (
        StepBound(kind="reason", times=texts, output=settings.max_tokens, words=words, form=AnswerForm.PROMPT),
        StepBound(kind="retrieve", times=settings.searches),
    )


SPEC = SystemSpec(
    **description("toolformer"),
    settings=ToolformerSettings,
    open=toolformer,
    needs=always(Needs(words=OWN, corpus=True)),
    step_bounds=step_bounds,
)
