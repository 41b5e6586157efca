"""Details of answers: what a system records of its answer beyond text, sentences and paragraphs."""

from typing import Any

from msgspec import Struct

from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion
from cotrail.systems.registry import recorded_system


def details_of(record: RunRecord, traced: TracedQuestion) -> Struct | None:
    """The details of a question's answer, in the type that the run's system names; see `details_in`."""
    return details_in(record.system, record.system_version, traced.details)


def details_in(system: str, version: int, details: Any) -> Struct | None:
    """Details as they are recorded, in the type that this version of the system names.

    None where there are none, or where this release doesn't have the system any more: traces show them as JSON then.
    """
    spec = recorded_system(system, version)
    return spec.details_in(details) if spec else None
