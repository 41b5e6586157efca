"""A run as BrowseComp-Plus's evaluation reads it: a file for each question (texttron/BrowseComp-Plus, README)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct

from cotrail.common.printable_text import printable_json
from cotrail.core.actions.open import OPEN
from cotrail.core.actions.retrieve import RETRIEVE
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion
from cotrail.models.schema.states import QuestionStatus

TOOLS = {RETRIEVE.name: "search", OPEN.name: "get_document"}
"""The publishers' names of the tools that kinds of steps stand for."""


class Metadata(Struct, frozen=True, kw_only=True):
    """What the evaluation names in its summary, and what it reads past."""

    model: str
    system: str
    run: str


class Output(Struct, frozen=True, kw_only=True, tag="output_text"):
    """The answer, which the evaluation's judge reads."""

    output: str


class Submission(Struct, frozen=True, kw_only=True):
    """A question.

    tool_call_counts: the searches and the pages opened; those that failed aren't counted.
    status: `completed`, without which the evaluation counts an answer as wrong, or the state that the question is in.
    retrieved_docids: the ids of all that searches found, be it collected or not, in the order in which it was found.
    result: the answer; empty where there is none.
    """

    metadata: Metadata
    query_id: str
    tool_call_counts: Mapping[str, int]
    status: str
    retrieved_docids: tuple[str, ...]
    result: tuple[Output, ...]


def submission_files(record: RunRecord, questions: Iterable[TracedQuestion]) -> Iterator[tuple[str, bytes]]:
    """The names of a run's files and their contents, one for each question by its number."""
    for number, question in enumerate(questions, start=1):
        yield f"{number:06}.json", printable_json(msgspec.json.encode(submission(record, question))) + b"\n"


def submission(record: RunRecord, question: TracedQuestion) -> Submission:
    """A question of the run as its file has it."""
    used = [step for step in question.steps if step.kind in TOOLS and step.result is not None]
    found = (hit.paragraph.id for step in used if step.kind == RETRIEVE.name for hit in step.hits)
    return Submission(
        metadata=Metadata(model=record.model_name, system=record.system, run=record.id),
        query_id=question.key,
        tool_call_counts=Counter(TOOLS[step.kind] for step in used),
        status="completed" if question.status == QuestionStatus.FINISHED else question.status,
        retrieved_docids=tuple(dict.fromkeys(found)),
        result=() if question.answer is None else (Output(output=question.answer),),
    )
