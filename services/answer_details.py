"""Details of answers: what a system records of its answer beyond text, sentences and paragraphs."""

import msgspec
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
        spec = find_system(record.system, record.system_version)
    except (UnknownNameError, UnknownVersionError):
        return None
    return None if spec.details is None else msgspec.convert(traced.details, spec.details | None)
