"""The audit trail of runs: its verification and its export."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.audit import verification
from cotrail.audit.findings import Finding, Verification
from cotrail.audit.plan_check import ALGORITHM
from cotrail.audit.provenance import provenance
from cotrail.audit.records import Record
from cotrail.models.queries.runs import resolve_run
from cotrail.models.queries.traces import find_question
from cotrail.models.records.trail import read_trail


def trail(connection: Connection, run: str) -> tuple[str, Iterator[Record]]:
    """A run's id, and all that is recorded of it; run: its id, the beginning of it, its name, or `latest`."""
    run_id = resolve_run(connection, run)
    return run_id, read_trail(connection, run_id)


def verify(
    records: Iterable[Record], digest: str | None = None, plan: str | None = None, *, bundled: bool = False
) -> Verification:
    """Computes all digests of a run's records again, and names what was changed, removed, added or reordered.

    digest, plan: the run's and its plan's, as they were noted down once; bundled: whether the records are a file's.
    """
    checked = verification.verify(records, bundled=bundled)
    noted = [
        Finding(table="runs", what="changed", run=checked.run, column=column, detail=f"{given} was noted down")
        for column, given, found in (("digest", digest, checked.digest), ("provenance", plan, checked.plan))
        if given is not None and _digits(given) != _digits(found)
    ]
    return replace(checked, findings=(*checked.findings, *noted))


def _digits(digest: str | None) -> str:
    return (digest or "").lower().removeprefix(ALGORITHM)


def question_provenance(connection: Connection, run: str, question: str) -> tuple[str, dict[str, Any]]:
    """A run's id, and the PROV-JSON document of one of its questions, given by its key or its number from 1."""
    run_id = resolve_run(connection, run)
    return run_id, provenance(read_trail(connection, run_id, [find_question(connection, run_id, question)]))
