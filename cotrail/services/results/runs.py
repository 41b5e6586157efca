"""Runs: listed, shown in detail, how they stand, and at a glance."""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from sqlalchemy import Connection, Engine

from cotrail.audit.run_check import PLAN, plan_digest
from cotrail.common.nearest import refused_choice, unknown
from cotrail.core.binding import name_in
from cotrail.core.repeats import Repeat, read_repeat
from cotrail.errors import InputError
from cotrail.evaluation.experiments.costs import Cost
from cotrail.evaluation.metrics.answer_metrics import main_metrics
from cotrail.models.queries import runs as stored
from cotrail.models.queries.events import present
from cotrail.models.queries.progress import Outage, StepCounts, StopCause, read_outages, read_progress
from cotrail.models.queries.projects import makers_of
from cotrail.models.queries.question_summaries import SummaryCounts, read_summarized
from cotrail.models.queries.runs import RunOrder as RunOrder
from cotrail.models.queries.workers import PACE_SECONDS, Pace, read_paces
from cotrail.models.records.budgets import Blockage, read_blockage
from cotrail.models.records.runs import NO_LABELS, read_labels
from cotrail.models.schema.states import QuestionStatus, RunState
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.results import summarizing
from cotrail.services.results.reports.reported_runs import configuration
from cotrail.services.runs.labels import find_run
from cotrail.services.runs.progress import RunProgress, read_reasons, run_progress, scores_so_far
from cotrail.services.runs.scores import adopted_from, run_cost
from cotrail.services.store import open_store, reading, reading_from

RUN_STATES = tuple(map(str, RunState))
"""The states by which runs are filtered."""


class RunHead(Struct, frozen=True, kw_only=True):
    """What a run is, for lists and at a glance; name, tags: by which people find it."""

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


def _head(each: stored.RunSummary) -> dict[str, Any]:
    """The fields of a `RunHead` that lists and overviews have alike."""
    return {
        "run": each.run.id,
        "name": each.labels.name,
        "tags": each.labels.tags,
        "state": each.state,
        "corpora": tuple(each.run.corpora),
        **{name: getattr(each.run, name) for name in ("created_at", "priority", "system", "dataset")},
    }


class ListedRun(RunHead, frozen=True, kw_only=True):
    """A run in a list; total: the number of its questions; questions: by status; repeat: which of several it is."""

    total: int
    questions: dict[str, int]
    desired_state: str
    corpus: str | None
    repeat: Repeat | None = None

    @property
    def model_name(self) -> str:
        """The name of the model alone, without its digest."""
        return name_in(self.model) or self.model

    @property
    def done(self) -> int:
        """The number of questions that are finished or failed."""
        return self.questions[QuestionStatus.FINISHED] + self.questions[QuestionStatus.FAILED]

    @property
    def unanswered(self) -> int:
        """The number of questions that failed or are blocked."""
        return self.questions[QuestionStatus.FAILED] + self.questions[QuestionStatus.BLOCKED]


class RunListPage(Struct, frozen=True, kw_only=True):
    """Runs in an order; more: how many further ones there are behind them."""

    runs: tuple[ListedRun, ...]
    more: int

    @property
    def next_after(self) -> str | None:
        """The run behind which the next page begins, if there is one."""
        return self.runs[-1].run if self.more and self.runs else None


def read_page(
    connection: Connection,
    filters: Sequence[stored.RunFilter] = (),
    *,
    limit: int | None = None,
    after: str | None = None,
    order: RunOrder = "newest",
) -> RunListPage:
    """A page of the runs for which all filters hold; after: it begins behind this run.

    Raises what `resolve_run` does.
    """
    behind = None if after is None else stored.resolve_run(connection, after)
    records = stored.list_runs(connection, filters, limit=limit, after=behind, order=order)
    full = limit is not None and len(records) == limit
    more = stored.count_runs(connection, filters, after=records[-1].run.id, order=order) if full and records else 0
    return RunListPage(runs=tuple(map(_listed, records)), more=more)


def _listed(each: stored.RunSummary) -> ListedRun:
    return ListedRun(
        **_head(each),
        total=sum(each.questions.values()),
        questions=each.questions,
        desired_state=each.run.desired_state,
        corpus=each.run.corpus,
        model=each.run.model,
        repeat=read_repeat(each.run.provenance),
    )


def read_filter(text: str) -> stored.RunFilter:
    """The filter that a person writes as KEY=VALUE, or as a text; raises InputError with all keys, or all states."""
    key, equals, value = text.partition("=")
    if not equals:
        return stored.RunFilter(None, text)
    if key not in stored.KEYS:
        raise InputError(f"{unknown('key', key, stored.KEYS)}; a text without = is looked for in ids and labels")
    if key == "state" and value not in RUN_STATES:
        raise InputError(refused_choice("state", value, RUN_STATES))
    return stored.RunFilter(key, value)


Limit = Annotated[int, Meta(ge=1, le=1000)]


@operation("runs.index", "GET", "/runs", Scope.READ)
def show_runs(
    filters: Sequence[str] = (), limit: Limit | None = None, after: str | None = None, order: RunOrder = "newest"
) -> RunListPage:
    """List runs, the newest first, or the oldest.

    filters: `KEY=VALUE` or a text, all of which have to hold; after: the run behind which the page begins.
    """
    conditions = [read_filter(each) for each in filters]
    with reading() as connection:
        return read_page(connection, conditions, limit=limit, after=after, order=order)


class RunDetails(RunProgress, frozen=True, kw_only=True):
    """A run's progress with all that is known of the run.

    kinds: its steps by their kind. cost: what it asked for and spent; adopted_from: where its adopted steps were
    computed. reasons: why questions have no answer. configuration: all that decides its results. name, tags: by which
    people find it.
    """

    kinds: tuple[StepCounts, ...]
    cost: Cost
    adopted_from: str | None
    reasons: tuple[StopCause, ...]
    configuration: stored.RunRecord
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


@operation("runs.show", "GET", "/runs/{run}", Scope.READ)
def show_run(run: str) -> RunDetails:
    """Show a run: its configuration, where its questions and steps stand, and what went wrong."""
    with reading() as connection:
        return describe_run(connection, run)


# How runs stand, for lists of them: scores, speed, the time left, what they took, and who asked for them.
#
# All of it is read by an index, or stands with the run; scores that have to be computed first come when they are there.

COMPUTING_SECONDS = 0.3
"""How long scores of a list of runs may be computed, not counting the last run."""


class RunStanding(Struct, frozen=True, kw_only=True):
    """How a run stands.

    scores: its main metrics, the first one first; of a run that is under way, over its first questions.
    rate: questions that ended in a second, over the last ten minutes; seconds_left: what the open ones take at that
        rate. Both are None where nothing is under way, or nothing has ended yet.
    counts: of its summarized questions, and what they took.
    asked_by: who submitted it through the service; empty where nobody did.
    """

    run: str
    scores: tuple[summarizing.MeanScore, ...]
    rate: float | None
    seconds_left: float | None
    counts: SummaryCounts
    asked_by: str

    @property
    def dollars(self) -> Decimal | None:
        """What its ended questions cost; None where its models have no price."""
        return self.counts.cost


def standings_of(engine: Engine, summaries: Sequence[stored.RunSummary]) -> tuple[RunStanding, ...]:
    """How these runs stand, in their order."""
    with reading_from(engine) as connection:
        due = [
            each
            for each in summaries
            if summarizing.ended(each) <= summarizing.SMALL and summarizing.is_due(connection, each)
        ]
    goes = summarizing.for_seconds(COMPUTING_SECONDS)
    for each in due:
        if goes():
            summarizing.summarize(engine, each.run.id, goes)
    with reading_from(engine) as connection:
        return tuple(_standings(connection, summaries))


def _standings(connection: Connection, summaries: Sequence[stored.RunSummary]) -> Iterator[RunStanding]:
    ids = [each.run.id for each in summaries]
    rows, paces, actors = read_summarized(connection, ids), read_paces(connection, ids), makers_of(connection, ids)
    until = time.monotonic() + COMPUTING_SECONDS
    for each in summaries:
        row: Any = rows.get(each.run.id)
        rate = _rate(each, paces.get(each.run.id))
        scores: tuple[summarizing.MeanScore, ...] = ()
        if row and row["complete"]:
            # The database doesn't keep the order of keys.
            ranked = [row["scores"][each.name] for each in main_metrics() if each.name in row["scores"]]
            scores = msgspec.convert(ranked, tuple[summarizing.MeanScore, ...])
        elif time.monotonic() < until:
            so_far = scores_so_far(connection, each.run)
            scores = tuple(summarizing.mean_score(of.metric, of.mean, of.interval, partial=True) for of in so_far)
        yield RunStanding(
            run=each.run.id,
            scores=scores,
            rate=rate,
            seconds_left=each.questions[QuestionStatus.OPEN] / rate if rate else None,
            counts=summarizing.counts_in(row),
            asked_by=actors.get(each.run.id, ""),
        )


def _rate(summary: stored.RunSummary, pace: Pace | None) -> float | None:
    if pace is None or summary.state != RunState.RUNNING:
        return None
    return pace.questions / max(min(PACE_SECONDS, (pace.now - summary.run.created_at).total_seconds()), 1.0)


Runs = Annotated[Sequence[str], Meta(max_length=100)]


@operation("summaries.standings", "GET", "/standings", Scope.READ)
def show_standings(runs: Runs) -> tuple[RunStanding, ...]:
    """Say how these runs stand: their scores, how fast they are, what they took and who asked for them.

    runs: their ids, 100 at most.
    """
    # In their order; raises UnknownNameError.
    with open_store() as engine:
        with reading_from(engine) as connection:
            found = {each.run.id: each for each in stored.summaries_of(connection, runs)}
        return standings_of(engine, [found[each] for each in runs])


# One run at a glance: what its page begins with. However large the run is, all of it is read by an index.

MOST_REASONS = 1000
"""The number of failed and blocked questions up to which it is said why."""


class RunOverview(RunHead, frozen=True, kw_only=True):
    """A run at a glance.

    questions: the number of all; statuses: how many have each.
    blockage: the cause that keeps further questions from being admitted; outages: the servers that are away.
    reasons: why questions failed or are blocked; none where so many are that a list of them tells more.
    configuration: all that decides its results, as names and values; plan: the digest of its plan, None where it has
    none. origin: the run that it was forked from. place: the id behind which its next event comes.
    """

    questions: int
    statuses: Mapping[str, int]
    standing: RunStanding
    blockage: Blockage | None
    outages: tuple[Outage, ...]
    reasons: tuple[StopCause, ...]
    configuration: tuple[tuple[str, str], ...]
    plan: str | None
    digest: str | None
    origin: str | None
    forked_at: str | None
    experiment: str | None
    place: str

    @property
    def done(self) -> int:
        return self.statuses[QuestionStatus.FINISHED] + self.statuses[QuestionStatus.FAILED]

    @property
    def goes_on(self) -> bool:
        """Whether it isn't over, unless a person acts."""
        return self.state in (RunState.RUNNING, RunState.PAUSED)


@operation("runs.overview", "GET", "/runs/{run}/overview", Scope.READ)
def show_overview(run: str) -> RunOverview:
    """Show a run at a glance: its state, its scores so far, what went wrong, its configuration."""
    with open_store() as engine:
        with reading_from(engine) as connection:
            place = str(present(connection))
            [summary] = stored.summaries_of(connection, [stored.resolve_run(connection, run)])
        [standing] = standings_of(engine, [summary])
        with reading_from(engine) as connection:
            return _overview(connection, summary, standing, place)


def _overview(connection: Connection, summary: stored.RunSummary, standing: RunStanding, place: str) -> RunOverview:
    run_id = summary.run.id
    record, statuses = summary.run, summary.questions
    troubled = statuses[QuestionStatus.FAILED] + statuses[QuestionStatus.BLOCKED]
    plan = record.provenance.get(PLAN)
    return RunOverview(
        **_head(summary),
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
