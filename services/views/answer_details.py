"""Details of answers: what a system records of its answer beyond text, sentences and paragraphs."""

from msgspec import Struct

from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion
from cotrail.systems.registry import recorded_system


def details_of(record: RunRecord, traced: TracedQuestion) -> Struct | None:
    """The details of a question's answer, in the type that the run's system names.

    None where there are none, or where this release doesn't have the system any more: traces show them as JSON then.
    """
    system = recorded_system(record.system, record.system_version)
    return system.details_in(traced.details) if system else None
