"""Filters of the list of runs."""

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct
from sqlalchemy import ColumnElement, Text, and_, cast, exists, not_, or_, select

from cotrail.core.binding import FURTHER_CORPUS
from cotrail.core.repeats import REPEAT
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
