"""Details of answers: what a system records of its answer beyond text, sentences and paragraphs."""

from msgspec import Struct

from cotrail.errors import UnknownNameError, UnknownVersionError
from cotrail.systems.registry import find_system
from models.queries.runs import RunRecord
from models.queries.traces import TracedQuestion


def details_of(record: RunRecord, traced: TracedQuestion) -> Struct | None:
    """The details of a question's answer, in the type that the run's system names.

    None where there are none, or where this release doesn't have the system any more: traces show them as JSON then.
    """
    try:
        return find_system(record.system, record.system_version).details_in(traced.details)
    except (UnknownNameError, UnknownVersionError):
        return None
