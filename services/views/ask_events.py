"""What is told of a question while it is answered: records of one union, which JSON tells apart by `event`."""

from typing import Any

from msgspec import Struct

from cotrail.services.views.shown_steps import ShownStep


class AskEvent(Struct, frozen=True, kw_only=True, tag_field="event"):
    """Something that happened to a question that is being answered."""


class Asked(AskEvent, frozen=True, kw_only=True, tag="asked"):
    """It is recorded and in the queues; warnings: what its run lacks, or has another thing for."""

    run: str
    question: str
    warnings: tuple[str, ...] = ()


class Token(AskEvent, frozen=True, kw_only=True, tag="token"):
    """A piece of what a step writes at the moment: of its text, or of a thought before it.

    A step that is carried out again begins anew. What a step has written in the end is in its `StepEnded`.
    """

    step: int
    text: str
    thought: bool = False


class StepEnded(AskEvent, frozen=True, kw_only=True, tag="step"):
    """A step has a result, or has failed."""

    step: ShownStep


class Source(Struct, frozen=True, kw_only=True):
    """A paragraph that the question collected: where it comes from, and the search that found it first."""

    id: str
    title: str
    text: str
    step: int
    query: str


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of all steps together; reasoning: those of thoughts, which `generated` includes."""

    prompt: int = 0
    cached: int = 0
    generated: int = 0
    reasoning: int = 0


class Answer(AskEvent, frozen=True, kw_only=True, tag="answer"):
    """It has ended. answer: None where it has none, for the reason that is given; ended_by: see `TracedQuestion`."""

    status: str
    answer: str | None
    reason: str | None
    ended_by: str
    sources: tuple[Source, ...]
    usage: Usage


class End(AskEvent, frozen=True, kw_only=True, tag="end"):
    """Nothing follows; trace: the whole record, as `cotrail trace RUN 1 --json` prints it."""

    trace: dict[str, Any]


AnyAskEvent = Asked | Token | StepEnded | Answer | End
