"""Runs that were submitted, as their submission is answered."""

from collections.abc import Sequence

from sqlalchemy import Connection

from cotrail.audit.plan_check import PLAN, plan_digest
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.models.records.labels import NO_LABELS, namesakes, read_labels
from cotrail.models.records.runs import STAND_INS
from cotrail.services.runs.submitted import Submitted, SubmittedRun
from cotrail.services.runs.waves import waves_in_words


def read_submission(connection: Connection, ids: Sequence[str], warnings: Sequence[str] | None = None) -> Submitted:
    """What there is to say of these runs, all repeats of one; where no warnings are given, those that are recorded."""
    records = [read_run(connection, each) for each in ids]
    labels = read_labels(connection, ids)
    names = {each: labels.get(each, NO_LABELS).name for each in ids}
    first = records[0]
    return Submitted(
        runs=tuple(
            SubmittedRun(
                run=record.id,
                questions=record.size,
                plan=plan_digest(record.provenance[PLAN]),
                name=names[record.id],
            )
            for record in records
        ),
        warnings=warnings_of(first) if warnings is None else tuple(warnings),
        waves=waves_in_words(first.system, first.system_version, first.settings) if first.batched else None,
        namesakes={run: tuple(namesakes(connection, run, name)) for run, name in names.items() if name},
    )


def warnings_of(record: RunRecord) -> tuple[str, ...]:
    """What is recorded of what a run lacks, or has another thing for."""
    return tuple(record.provenance.get(STAND_INS, ()))
