"""The plan of a run, and where the run departed from it."""

from datetime import datetime

from msgspec import Struct

from cotrail.evaluation.plans.plan import Plan


class RunPlan(Struct, frozen=True, kw_only=True):
    """A run's plan.

    plan, digest: None where the run was submitted before plans were recorded.
    sealed: when, by the database's clock. deviations: where the run departed from it, in words; remarks: what the plan
        provides for and a reader should know.
    """

    run: str
    sealed: datetime
    digest: str | None = None
    plan: Plan | None = None
    deviations: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
