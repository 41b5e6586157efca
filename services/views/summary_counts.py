"""How far a run's questions are summarized, and how they came out in numbers."""

import msgspec
from sqlalchemy import Connection, RowMapping

from cotrail.models.commands.summarizing import VERSION
from cotrail.models.queries.question_summaries import SummaryCounts as SummaryCounts
from cotrail.models.queries.question_summaries import read_summarized
from cotrail.models.queries.runs import RunSummary
from cotrail.models.schema.states import QuestionStatus

SMALL = 200
"""The number of questions that have ended up to which a run is summarized when somebody asks for it."""


def ended(summary: RunSummary) -> int:
    """The number of a run's questions that have ended."""
    open_ones = summary.questions[QuestionStatus.OPEN] + summary.questions[QuestionStatus.BLOCKED]
    return sum(summary.questions.values()) - open_ones


def is_current(row: RowMapping, digest: str | None) -> bool:
    """Whether a run's summaries are by today's rules, and of the run as it is sealed by this digest, or not yet."""
    return bool(row["version"] == VERSION and row["digest"] == digest)


def is_due(connection: Connection, summary: RunSummary) -> bool:
    """Whether questions of the run have ended that aren't summarized, or the run was sealed since."""
    row = read_summarized(connection, [summary.run.id]).get(summary.run.id)
    if row is None or not is_current(row, summary.run.digest):
        return True
    return counts_in(row).questions != ended(summary) or (row["digest"] is not None and not row["complete"])


def counts_in(row: RowMapping | None) -> SummaryCounts:
    """The numbers of a run's summarized questions; none where none is."""
    return msgspec.convert(row["counts"], SummaryCounts, strict=False) if row else SummaryCounts()
