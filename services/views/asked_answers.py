"""The end of a question that was asked alone: its answer, with sources and usage."""

from typing import Literal

from cotrail.core.budgets import RUN, Budget
from cotrail.core.ended_by import LIMIT
from cotrail.core.results import Generated
from cotrail.models.queries.traces import TracedQuestion
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.views.ask_events import Answer, Source, Usage

State = Literal["queued", "in_progress", "completed", "failed", "cancelled", "incomplete"]
"""How far a question is: before its first step begins, until it ends, and how it ended. One that a budget ended is
incomplete, with what was found until then; one that is blocked has failed, until `cotrail resume`."""

_ENDS: dict[str, State] = {
    QuestionStatus.FINISHED: "completed",
    QuestionStatus.FAILED: "failed",
    QuestionStatus.BLOCKED: "failed",
    QuestionStatus.CANCELLED: "cancelled",
}
_BUDGETS = {f"{LIMIT}{of}{name}" for of in ("", RUN) for name in Budget.__struct_fields__}


def end_of(answer: Answer) -> State:
    """How a question ended."""
    return "incomplete" if answer.ended_by in _BUDGETS else _ENDS[answer.status]


def answer_of(question: TracedQuestion) -> Answer:
    """The end of a question."""
    return Answer(
        status=question.status,
        answer=question.answer,
        reason=f"{question.reason.type}: {question.reason.message}" if question.reason else None,
        ended_by=question.ended_by,
        sources=tuple(
            Source(
                id=each.paragraph.id,
                title=each.paragraph.title,
                text=each.paragraph.text,
                step=each.step,
                query=each.query,
            )
            for each in question.collected
        ),
        usage=usage_of(question),
    )


def usage_of(question: TracedQuestion) -> Usage:
    """The tokens of a question's steps, those that failed included as far as they wrote."""
    results = [step.failure.written if step.failure else step.result for step in question.steps]
    written = [result for result in results if isinstance(result, Generated)]
    return Usage(
        prompt=sum(each.prompt_tokens for each in written),
        cached=sum(each.cached_prompt_tokens for each in written),
        generated=sum(each.generated_tokens for each in written),
        reasoning=sum(each.thought_tokens for each in written),
    )
