"""One run: its configuration, where its questions and steps stand, and what went wrong."""

from sqlalchemy import Connection

from cotrail.evaluation.experiments.costs import Cost
from cotrail.models.queries.progress import StepCounts, read_progress
from cotrail.models.records.labels import NO_LABELS, read_labels
from cotrail.services.runs.named_runs import RunRecord, find_run
from cotrail.services.runs.run_progress import Cause, RunProgress, read_reasons, run_progress
from cotrail.services.views.reports.costs import adopted_from, run_cost


class RunDetails(RunProgress, frozen=True, kw_only=True):
    """A run's progress with all that is known of the run.

    kinds: its steps by their kind.
    cost: what it asked for and spent; adopted_from: where its adopted steps were computed.
    reasons: why questions have no answer.
    configuration: all that decides its results.
    name, tags: by which people find it.
    """

    kinds: tuple[StepCounts, ...]
    cost: Cost
    adopted_from: str | None
    reasons: tuple[Cause, ...]
    configuration: RunRecord
    name: str | None
    tags: tuple[str, ...]


def describe_run(connection: Connection, run: str) -> RunDetails:
    """The run as it stands; run: its id, the beginning of it, its name, or `latest`."""
    record = find_run(connection, run)
    labels = read_labels(connection, [record.id]).get(record.id, NO_LABELS)
    progress = read_progress(connection, record.id)
    summary = run_progress(progress)
    return RunDetails(
        **{name: getattr(summary, name) for name in RunProgress.__struct_fields__},
        kinds=progress.kinds,
        cost=run_cost(connection, record.id),
        adopted_from=adopted_from(record),
        reasons=read_reasons(connection, record.id),
        configuration=record,
        name=labels.name,
        tags=labels.tags,
    )
