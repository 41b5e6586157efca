"""Plans of runs: what was stated and decided before their first step."""

from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.store import reading
from cotrail.services.views.plans import RunPlan, describe_plan, reporting_of


@operation("GET", "/runs/{run}/plan", Scope.READ)
def show(run: str) -> RunPlan:
    """Show a run's plan, sealed before its first step, and where the run departed from it."""
    with reading() as connection:
        return describe_plan(connection, run)


@operation("GET", "/runs/{run}/plan/reporting", Scope.READ)
def reporting(run: str, dataset: str | None = None) -> tuple[str, ...]:
    """Say what stands below a run's scores: what was planned of them; dataset: by whose rules they are, if named."""
    with reading() as connection:
        return reporting_of(connection, run, dataset)
