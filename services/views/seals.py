"""What of a run is sealed, by which digests, and since when."""

from datetime import datetime

from sqlalchemy import Connection

from cotrail.audit.plan_check import PLAN, plan_digest
from cotrail.models.queries.seals import SealedQuestions, read_sealed_questions
from cotrail.services.runs.named_runs import find_run


class Seals(SealedQuestions, frozen=True, kw_only=True):
    """The digests of a run, beside its questions'.

    opened: that of its configuration, from created_at on; plan: that of its plan, which is part of the configuration,
    None where it was submitted before plans were recorded; digest: that of all of it, None while it isn't closed.
    """

    run: str
    created_at: datetime
    opened: str
    plan: str | None
    digest: str | None


def read_seals(connection: Connection, run: str) -> Seals:
    """The seals of a run; raises UnknownNameError."""
    record = find_run(connection, run)
    sealed = read_sealed_questions(connection, record.id)
    return Seals(
        **{name: getattr(sealed, name) for name in SealedQuestions.__struct_fields__},
        run=record.id,
        created_at=record.created_at,
        opened=record.opened,
        plan=plan_digest(record.provenance[PLAN]) if PLAN in record.provenance else None,
        digest=record.digest,
    )
