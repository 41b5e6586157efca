"""Details of answers: what a system records of its answer beyond text, sentences and paragraphs."""

from msgspec import Struct

from cotrail.errors import UnknownNameError, UnknownVersionError
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion
from cotrail.systems.registry import find_system
from cotrail.systems.spec import SystemSpec


def details_of(record: RunRecord, traced: TracedQuestion) -> Struct | None:
    """The details of a question's answer, in the type that the run's system names.

    None where there are none, or where this release doesn't have the system any more: traces show them as JSON then.
    """
    spec = _spec_of(record)
    return spec.details_in(traced.details) if spec else None


def details_type(record: RunRecord) -> type[Struct] | None:
    """The type of the details of a run's answers; None where they have none, or the system isn't there any more."""
    spec = _spec_of(record)
    return spec.details if spec else None


def has_answers(record: RunRecord) -> bool:
    """Whether a run has answers, and not paragraphs alone; true where this release doesn't have its system any more."""
    spec = _spec_of(record)
    return spec is None or spec.answers_with(record.settings)


def _spec_of(record: RunRecord) -> SystemSpec | None:
    try:
        return find_system(record.system, record.system_version)
    except (UnknownNameError, UnknownVersionError):
        return None
