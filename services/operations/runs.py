"""Runs: submitted, listed, shown, steered, scored."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from cotrail.services.access.actor import Scope
from cotrail.services.lists.run_list import RunListPage, RunOrder, read_filter, read_page
from cotrail.services.operations.apps import App, current_app
from cotrail.services.operations.operation import HERE, operation
from cotrail.services.runs import control, estimating, labels, submission
from cotrail.services.runs.control import ControlledRun, PrioritizedRun, RetriedRun
from cotrail.services.runs.control import Report as _Report
from cotrail.services.runs.estimating import Estimate
from cotrail.services.runs.labels import LabelledRun
from cotrail.services.runs.named_runs import find_run
from cotrail.services.runs.requests import Priority as Priority
from cotrail.services.runs.requests import RunRequest
from cotrail.services.runs.submitted import Submitted
from cotrail.services.runs.submitted_before import read_submission
from cotrail.services.runs.worker_keys import check_worker_keys
from cotrail.services.store import open_store, reading
from cotrail.services.views.run_details import RunDetails, describe_run
from cotrail.services.views.run_overview import RunOverview, read_overview

Report = Annotated[_Report, HERE]
Limit = Annotated[int, Meta(ge=1, le=1000)]


def _silent(_: int) -> None:
    """Reports nothing."""


@operation("GET", "/runs", Scope.READ)
def index(
    filters: Sequence[str] = (), limit: Limit | None = None, after: str | None = None, order: RunOrder = "newest"
) -> RunListPage:
    """List runs, the newest first, or the oldest.

    filters: `KEY=VALUE` or a text, all of which have to hold; after: the run behind which the page begins.
    """
    conditions = [read_filter(each) for each in filters]
    with reading() as connection:
        return read_page(connection, conditions, limit=limit, after=after, order=order)


@operation("GET", "/runs/{run}", Scope.READ)
def show(run: str) -> RunDetails:
    """Show a run: its configuration, where its questions and steps stand, and what went wrong."""
    with reading() as connection:
        return describe_run(connection, run)


@operation("GET", "/runs/{run}/overview", Scope.READ)
def overview(run: str) -> RunOverview:
    """Show a run at a glance: its state, its scores so far, what went wrong, its configuration."""
    with open_store() as engine:
        return read_overview(engine, run)


def _submitted_before(runs: Sequence[str]) -> Submitted:
    with reading() as connection:
        return read_submission(connection, runs)


@operation("POST", "/runs", Scope.SUBMIT, status=201, again=_submitted_before)
def submit(request: RunRequest, app: App = current_app) -> Submitted:
    """Submit a run to the queue. Everything is checked before anything is written."""
    prepared = submission.prepare(request)
    warnings = (*prepared.warnings, *check_worker_keys(app, prepared.submission.binding))
    with open_store() as engine:
        submission.submit(engine, prepared)
    with reading() as connection:
        return read_submission(connection, [run.id for run in prepared.runs], warnings)


@operation("POST", "/runs/estimate", Scope.SUBMIT)
def estimate(request: RunRequest) -> Estimate:
    """Say what a run may take and cost, and don't submit it."""
    prepared = submission.prepare(request)
    with reading() as connection:
        return estimating.estimate(connection, prepared)


@operation("POST", "/runs/{run}/pause", Scope.OPERATE)
def pause(run: str) -> ControlledRun:
    """Pause a run: no further step begins; steps under way finish and are recorded."""
    with open_store() as engine:
        return control.pause(engine, run)


@operation("POST", "/runs/{run}/resume", Scope.OPERATE)
def resume(run: str, report: Report = _silent) -> ControlledRun:
    """Continue a paused run, and try its blocked questions again."""
    with open_store() as engine:
        return control.resume(engine, run, report)


@operation("POST", "/runs/{run}/retry", Scope.OPERATE)
def retry(run: str, *, failed: bool = True, blocked: bool = True, report: Report = _silent) -> RetriedRun:
    """Try a run's failed and blocked questions again, from the step that they stopped at."""
    with open_store() as engine:
        return control.retry(engine, run, report, failed=failed, blocked=blocked)


@operation("PUT", "/runs/{run}/priority", Scope.OPERATE)
def prioritize(run: str, priority: Priority) -> PrioritizedRun:
    """Have a run's questions begun before those of runs with a lower number."""
    with open_store() as engine:
        return control.prioritize(engine, run, priority)


@operation("POST", "/runs/{run}/cancel", Scope.OPERATE)
def cancel(run: str, report: Report = _silent) -> ControlledRun:
    """End a run permanently; its record stays."""
    with open_store() as engine:
        return control.cancel(engine, run, report)


@operation("PATCH", "/runs/{run}/labels", Scope.SUBMIT)
def label(run: str, *, name: str | None = None, add: Sequence[str] = (), remove: Sequence[str] = ()) -> LabelledRun:
    """Name and tag a run; name: its new one, empty to take the former one away, none to leave it."""
    with open_store() as engine:
        return labels.label(engine, run, name=name, add=add, remove=remove)


class FoundRun(Struct, frozen=True, kw_only=True):
    """A run by its id, and the number of its questions."""

    run: str
    questions: int


@operation("GET", "/runs/{run}/id", Scope.READ)
def find(run: str) -> FoundRun:
    """Find a run by its id, the beginning of it, its name, or `latest`."""
    with reading() as connection:
        record = find_run(connection, run)
        return FoundRun(run=record.id, questions=record.size)


@operation("GET", "/runs/{run}/namesakes", Scope.READ)
def namesakes(run: str) -> tuple[str, ...]:
    """List the other runs that have a run's name, so that it finds none of them."""
    with reading() as connection:
        return labels.namesakes_of(connection, run)
