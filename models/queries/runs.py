"""Runs: which there are, how each was configured, and in which states they are."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, RowMapping, Text, and_, cast, exists, func, not_, or_, select, tuple_

from cotrail.common.nearest import guess
from cotrail.core.binding import EMBEDDING, FURTHER_CORPUS, read_corpora
from cotrail.core.repeats import REPEAT
from cotrail.errors import InputError, UnknownNameError
from cotrail.models.records.budgets import stopped_runs
from cotrail.models.records.projects import in_project, project_of, qualified, unqualified
from cotrail.models.records.runs import NO_LABELS, Labels, SubmittedRun, read_labels
from cotrail.models.schema.service_tables import run_summaries
from cotrail.models.schema.states import DesiredState, QuestionStatus, RunState
from cotrail.models.schema.tables import questions, run_labels, runs


class RunFilter(Struct, frozen=True):
    """A condition of runs: a key of `KEYS` with its value, or a text without a key, which id or labels contain."""

    key: str | None
    value: str


def condition(filter_: RunFilter, stopped: Collection[str]) -> ColumnElement[bool]:
    """Return the condition, for statements over runs; stopped: the runs that one cause blocks as a whole."""
    if filter_.key is None:
        return _has_text(filter_.value)
    if filter_.key == "state":
        return _is(filter_.value, stopped)
    return _CONDITIONS[filter_.key](filter_.value)


def _has_text(text: str) -> ColumnElement[bool]:
    labelled = or_(
        run_labels.c.name.icontains(text, autoescape=True),
        cast(run_labels.c.tags, Text).icontains(text, autoescape=True),
    )
    return or_(runs.c.id.icontains(text, autoescape=True), _labelled(labelled))


def _labelled(by: ColumnElement[bool]) -> ColumnElement[bool]:
    return runs.c.id.in_(select(run_labels.c.run_id).where(by))


def _equals(column: str) -> Callable[[str], ColumnElement[bool]]:
    return lambda value: runs.c[column] == value


def searches(corpus: str, revision: str | None = None) -> ColumnElement[bool]:
    """Return the condition that a run searches the corpus of this name; revision: that which it pins, None for any."""
    first, further = runs.c.corpus == corpus, FURTHER_CORPUS + corpus
    if revision is None:
        return or_(first, runs.c.knowledge.has_key(further))
    return or_(and_(first, runs.c.corpus_revision == revision), runs.c.knowledge[further].astext == revision)


def _shares(run: str) -> ColumnElement[bool]:
    """Return the condition that runs have a question of the run with this id, in the same words.

    Runs of another project share none: a project that lists its own learns nothing of what that project asks.
    """
    theirs, other = questions.alias(), runs.alias()
    same = and_(theirs.c.key == questions.c.key, theirs.c.text == questions.c.text)
    project = select(other.c.project).where(other.c.id == run).scalar_subquery()
    sharing = select(questions.c.run_id).join(theirs, same).where(theirs.c.run_id == run)
    return and_(runs.c.project == project, runs.c.id.in_(sharing))


_CONDITIONS: dict[str, Callable[[str], ColumnElement[bool]]] = {
    "system": _equals("system"),
    "dataset": _equals("dataset"),
    "corpus": searches,
    "model": _equals("model_name"),
    "experiment": _equals("experiment_id"),
    "name": lambda value: _labelled(run_labels.c.name == value),
    "repeat": lambda value: runs.c.provenance[REPEAT]["of"].astext == value,
    "shares": _shares,
    "tag": lambda value: _labelled(run_labels.c.tags.contains([value])),
}
KEYS = ("state", *_CONDITIONS)
"""What runs can be filtered by."""


def _is(state: str, stopped: Collection[str]) -> ColumnElement[bool]:
    """Return the condition that this is the runs' state; see `cotrail.models.queries.runs.state_of`."""
    if state in (DesiredState.CANCELLED, DesiredState.PRUNED):
        return runs.c.desired_state == state
    can_continue = and_(_has(QuestionStatus.OPEN), runs.c.id.not_in(stopped))
    live = runs.c.desired_state.in_((DesiredState.ACTIVE, DesiredState.PAUSED))
    # A run that is closed has a digest and neither open nor blocked questions; an index leaves these out.
    unsealed = runs.c.digest.is_(None)
    return {
        RunState.RUNNING: and_(unsealed, runs.c.desired_state == DesiredState.ACTIVE, can_continue),
        RunState.PAUSED: and_(unsealed, runs.c.desired_state == DesiredState.PAUSED, can_continue),
        RunState.BLOCKED: and_(unsealed, live, not_(can_continue), _has(QuestionStatus.BLOCKED)),
        RunState.FINISHED: and_(live, not_(can_continue), not_(_has(QuestionStatus.BLOCKED))),
    }[RunState(state)]


def _has(status: QuestionStatus) -> ColumnElement[bool]:
    return exists().where(questions.c.run_id == runs.c.id, questions.c.status == status)


def conditions(filters: Sequence[RunFilter], stopped: Collection[str]) -> list[ColumnElement[bool]]:
    """Return the conditions of all filters, which all have to hold."""
    return [condition(each, stopped) for each in filters]


LATEST = "latest"
"""The name that stands for the run submitted last."""

RunOrder = Literal["newest", "oldest"]
"""Which runs come first in a list."""

COMPARED_RUNS = 1000
"""The number of newest runs among which the one that was meant is looked for."""


class RunRecord(SubmittedRun, frozen=True, kw_only=True):
    """A row of `runs`: the configuration of a run, and what a person wants of it."""

    created_at: datetime
    experiment_id: str | None
    desired_state: str
    size: int
    corpus: str | None
    corpus_revision: str
    knowledge: dict[str, str]
    model: str
    embedder: str
    entailer: str
    profile: str
    temperature: float
    seed: int
    demonstrations: dict[str, str]
    opened: str
    digest: str | None

    @property
    def searches(self) -> bool:
        return bool(self.corpora or self.knowledge)

    @property
    def corpora(self) -> dict[str, str]:
        """The revisions of its corpora by their names, the first one first."""
        return read_corpora(msgspec.structs.asdict(self))


class RunSummary(Struct, frozen=True, kw_only=True):
    """A run and the number of its questions by status.

    stopped: whether one cause blocks it as a whole (`cotrail.models.records.budgets`).
    """

    run: RunRecord
    questions: dict[str, int]
    stopped: bool
    labels: Labels = NO_LABELS

    @property
    def state(self) -> RunState:
        """Its state now."""
        return state_of(self.run.desired_state, self.questions, stopped=self.stopped)


def state_of(desired: str, counts: Mapping[str, int], *, stopped: bool) -> RunState:
    """Return a run's state, as the view `run_states` does.

    desired: what a person wants of it; counts: of its questions by status; stopped: whether one cause blocks it.
    """
    if desired in (DesiredState.CANCELLED, DesiredState.PRUNED):
        return RunState(desired)
    if counts[QuestionStatus.OPEN] and not stopped:
        return RunState.PAUSED if desired == DesiredState.PAUSED else RunState.RUNNING
    return RunState.BLOCKED if counts[QuestionStatus.BLOCKED] else RunState.FINISHED


def resolve_run(connection: Connection, text: str) -> str:
    """Return the id of a run given by its id, its name, the beginning of its id, or `latest`.

    Raises UnknownNameError, and InputError where it may be several runs: none is preferred, as commands may remove it.
    """
    if not text:  # every id begins so
        raise UnknownNameError("the run's id is empty; `cotrail runs` lists them")
    if text == LATEST:
        submitted = runs.c.system != EMBEDDING, *in_project(connection, runs)
        newest = select(runs.c.id).where(*submitted).order_by(*_NEWEST).limit(1)
        if found := connection.execute(newest).scalar():
            return str(found)
        raise UnknownNameError("there is no run yet; `cotrail submit` begins one")
    by_name = _found(connection, runs.c.id.in_(select(run_labels.c.run_id).where(run_labels.c.name == text)))
    whole = _found(connection, runs.c.id == text)
    begun = whole or _found(connection, runs.c.id.startswith(text, autoescape=True))
    if len(matches := list(dict.fromkeys((*by_name, *begun)))) == 1:
        return matches[0]
    if matches:
        how = {"is the name of": by_name, "is the id of" if whole else "begins the id of": begun}
        listing = " and ".join(f"{words} {', '.join(ids)}" for words, ids in how.items() if ids)
        advice = "rename one with `cotrail label ID --name NAME`" if by_name else "write more of the id"
        raise InputError(f"{text!r} {listing}; {'give an id, or ' if by_name and not whole else ''}{advice}")
    meant = guess(text, _newest_names(connection))
    raise UnknownNameError(f"there is no run {text!r}{meant}; `cotrail runs` lists them")


def tagged(connection: Connection, tag: str) -> list[str]:
    """Return the ids of the newest few runs with this tag."""
    return _found(connection, runs.c.id.in_(select(run_labels.c.run_id).where(run_labels.c.tags.contains([tag]))))


def _found(connection: Connection, condition: ColumnElement[bool]) -> list[str]:
    """Return the ids of the newest few of these runs."""
    found = select(runs.c.id).where(condition, *in_project(connection, runs)).order_by(*_NEWEST).limit(6)
    return list(connection.execute(found).scalars())


def _newest_names(connection: Connection) -> list[str]:
    """Return the ids and names of the newest runs."""
    newest = select(runs.c.id, run_labels.c.name).outerjoin(run_labels, run_labels.c.run_id == runs.c.id)
    own = newest.where(*in_project(connection, runs))
    rows = connection.execute(own.order_by(*_NEWEST).limit(COMPARED_RUNS))
    return [name for row in rows for name in row if name is not None]


def list_runs(
    connection: Connection,
    filters: Sequence[RunFilter] = (),
    *,
    limit: int | None = None,
    after: str | None = None,
    order: RunOrder = "newest",
) -> list[RunSummary]:
    """Return runs in this order.

    filters: all have to hold; limit: at most this many; after: only those behind the run of this id.
    """
    stopped = stopped_runs(connection)
    chosen = *in_project(connection, runs), *_chosen(connection, filters, stopped, after, order)
    query = select(runs).where(*chosen).order_by(*_ORDERS[order]).limit(limit)
    records = [_record(connection, row) for row in connection.execute(query).mappings()]
    return _summaries(connection, records, stopped)


def summaries_of(connection: Connection, ids: Sequence[str]) -> list[RunSummary]:
    """Return the runs of these ids, the newest first; raises UnknownNameError where there is none of an id."""
    query = select(runs).where(runs.c.id.in_(ids), *in_project(connection, runs)).order_by(*_NEWEST)
    records = [_record(connection, row) for row in connection.execute(query).mappings()]
    if missing := set(ids) - {record.id for record in records}:
        raise UnknownNameError(f"there is no run {min(missing)!r}; `cotrail runs` lists them")
    return _summaries(connection, records, stopped_runs(connection))


def _summaries(connection: Connection, records: Sequence[RunRecord], stopped: Collection[str]) -> list[RunSummary]:
    ids = [record.id for record in records]
    known = _summarized(connection, ids)
    counts = _counts(connection, [each for each in ids if each not in known]) | known
    labels = read_labels(connection, ids)
    return [
        RunSummary(
            run=record,
            questions=counts.get(record.id, no_questions()),
            stopped=record.id in stopped,
            labels=labels.get(record.id, NO_LABELS),
        )
        for record in records
    ]


def count_runs(
    connection: Connection, filters: Sequence[RunFilter] = (), *, after: str | None = None, order: RunOrder = "newest"
) -> int:
    """Return how many runs `list_runs` would return without a limit."""
    chosen = *in_project(connection, runs), *_chosen(connection, filters, stopped_runs(connection), after, order)
    query = select(func.count()).select_from(runs).where(*chosen)
    return int(connection.execute(query).scalar_one())


_NEWEST = runs.c.created_at.desc(), runs.c.id.desc()
_ORDERS: Mapping[RunOrder, Sequence[ColumnElement[Any]]] = {"newest": _NEWEST, "oldest": (runs.c.created_at, runs.c.id)}


def _chosen(
    connection: Connection, filters: Sequence[RunFilter], stopped: Collection[str], after: str | None, order: RunOrder
) -> list[ColumnElement[bool]]:
    clauses = conditions([_of_store(connection, each) for each in filters], stopped)
    if after is not None:
        last = runs.alias("last")
        place = select(last.c.created_at, last.c.id).where(last.c.id == after)
        own, last_place = tuple_(runs.c.created_at, runs.c.id), place.scalar_subquery()
        clauses.append(own < last_place if order == "newest" else own > last_place)
    return clauses


def _of_store(connection: Connection, filter_: RunFilter) -> RunFilter:
    """Return the filter with the store's id in place of the project's name of an experiment."""
    if filter_.key != "experiment":
        return filter_
    return RunFilter(filter_.key, qualified(connection, filter_.value))


def _counts(connection: Connection, ids: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the number of questions of these runs by status."""
    grouped = select(questions.c.run_id, questions.c.status, func.count()).where(questions.c.run_id.in_(ids))
    counts: dict[str, dict[str, int]] = {}
    for run_id, status, count in connection.execute(grouped.group_by(questions.c.run_id, questions.c.status)):
        counts.setdefault(run_id, no_questions())[status] = count
    return counts


def _summarized(connection: Connection, ids: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the same of sealed runs that are summarized, without reading their questions."""
    query = select(runs.c.id, runs.c.size, run_summaries.c.counts["outcomes"].label("outcomes"))
    complete = run_summaries.c.complete, run_summaries.c.digest == runs.c.digest, runs.c.id.in_(ids)
    rows = connection.execute(
        query.join_from(runs, run_summaries, run_summaries.c.run_id == runs.c.id).where(*complete)
    )
    counts: dict[str, dict[str, int]] = {}
    for run_id, size, outcomes in rows:
        unanswered = {status: outcomes.get(status, 0) for status in (QuestionStatus.FAILED, QuestionStatus.CANCELLED)}
        counts[run_id] = no_questions() | unanswered | {QuestionStatus.FINISHED: size - sum(unanswered.values())}
    return counts


def searching_runs(connection: Connection, corpus: str, revision: str | None = None) -> list[str]:
    """Return the runs of a corpus that haven't ended, the newest first; blocked ones may still continue.

    revision: that which they pin; None for any.
    Those of other projects than the connection's are searched too, but not named: each is an empty string.
    """
    unended = exists().where(
        questions.c.run_id == runs.c.id, questions.c.status.in_((QuestionStatus.OPEN, QuestionStatus.BLOCKED))
    )
    live = runs.c.desired_state.in_((DesiredState.ACTIVE, DesiredState.PAUSED))
    query = select(runs.c.id, runs.c.project).where(searches(corpus, revision), runs.c.digest.is_(None), live, unended)
    own = project_of(connection)
    rows = connection.execute(query.order_by(*_NEWEST))
    return [row.id if own is None or row.project == own else "" for row in rows]


def read_run(connection: Connection, run_id: str) -> RunRecord:
    """Return the row of a run that exists."""
    row = connection.execute(select(runs).where(runs.c.id == run_id)).mappings().one()
    return _record(connection, row)


def no_questions() -> dict[str, int]:
    """Return a count of 0 for each status of questions."""
    return dict.fromkeys((str(status) for status in QuestionStatus), 0)


def _record(connection: Connection, row: RowMapping) -> RunRecord:
    id_ = row["experiment_id"]
    named = {"experiment_id": id_ and unqualified(connection, id_)}
    return msgspec.convert(dict(row) | named, RunRecord)
