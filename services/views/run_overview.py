"""One run at a glance: what its page begins with. However large the run is, all of it is read by an index."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection, Engine

from cotrail.audit.plan_check import PLAN, plan_digest
from cotrail.core.binding import name_in
from cotrail.models.queries.events import present
from cotrail.models.queries.progress import Outage, read_outages
from cotrail.models.queries.runs import RunSummary, summaries_of
from cotrail.models.records.blockage import Blockage, read_blockage
from cotrail.models.schema.states import QuestionStatus, RunState
from cotrail.services.runs.named_runs import resolve_run
from cotrail.services.runs.run_progress import Cause, read_reasons
from cotrail.services.views.reports.configuration import configuration
from cotrail.services.views.summarized_runs import RunStanding, standings_of

MOST_REASONS = 1000
"""The number of failed and blocked questions up to which it is said why."""


class RunOverview(Struct, frozen=True, kw_only=True):
    """A run at a glance.

    questions: the number of all; statuses: how many have each.
    blockage: the cause that keeps further questions from being admitted; outages: the servers that are away.
    reasons: why questions failed or are blocked; none where so many are that a list of them tells more.
    configuration: all that decides its results, as names and values; plan: the digest of its plan, None where it has
    none. origin: the run that it was forked from. place: the id behind which its next event comes.
    """

    run: str
    name: str | None
    tags: tuple[str, ...]
    state: RunState
    created_at: datetime
    priority: int
    system: str
    dataset: str
    corpora: tuple[str, ...]
    model: str
    questions: int
    statuses: Mapping[str, int]
    standing: RunStanding
    blockage: Blockage | None
    outages: tuple[Outage, ...]
    reasons: tuple[Cause, ...]
    configuration: tuple[tuple[str, str], ...]
    plan: str | None
    digest: str | None
    origin: str | None
    forked_at: str | None
    experiment: str | None
    place: str

    @property
    def done(self) -> int:
        """The number of questions that are finished or failed."""
        return self.statuses[QuestionStatus.FINISHED] + self.statuses[QuestionStatus.FAILED]

    @property
    def goes_on(self) -> bool:
        """Whether it isn't over, unless a person acts."""
        return self.state in (RunState.RUNNING, RunState.PAUSED)


def read_overview(engine: Engine, run: str) -> RunOverview:
    """A run at a glance; run: its id, the beginning of it, its name, or `latest`."""
    with engine.connect() as connection:
        place = str(present(connection))
        [summary] = summaries_of(connection, [resolve_run(connection, run)])
    [standing] = standings_of(engine, [summary])
    with engine.connect() as connection:
        return _overview(connection, summary, standing, place)


def _overview(connection: Connection, summary: RunSummary, standing: RunStanding, place: str) -> RunOverview:
    run_id = summary.run.id
    record, statuses = summary.run, summary.questions
    troubled = statuses[QuestionStatus.FAILED] + statuses[QuestionStatus.BLOCKED]
    plan = record.provenance.get(PLAN)
    return RunOverview(
        run=run_id,
        name=summary.labels.name,
        tags=summary.labels.tags,
        state=summary.state,
        created_at=record.created_at,
        priority=record.priority,
        system=record.system,
        dataset=record.dataset,
        corpora=tuple(record.corpora),
        model=name_in(record.model) or record.model,
        questions=sum(statuses.values()),
        statuses=statuses,
        standing=standing,
        blockage=read_blockage(connection, run_id) if statuses[QuestionStatus.BLOCKED] else None,
        outages=read_outages(connection, run_id) if summary.state == RunState.RUNNING else (),
        reasons=read_reasons(connection, run_id) if 0 < troubled <= MOST_REASONS else (),
        configuration=tuple(configuration(record)),
        plan=None if plan is None else plan_digest(plan),
        digest=record.digest,
        origin=record.origin,
        forked_at=record.forked_at,
        experiment=record.experiment_id,
        place=place,
    )
