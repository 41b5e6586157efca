"""The list of runs: a page of it, by filters that a person writes."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.nearest import refused_choice, unknown
from cotrail.core.binding import name_in
from cotrail.core.repeats import Repeat, read_repeat
from cotrail.errors import InputError
from cotrail.models.queries.run_filters import KEYS, RunFilter
from cotrail.models.queries.runs import RunOrder as RunOrder
from cotrail.models.queries.runs import RunSummary, count_runs, list_runs, resolve_run
from cotrail.models.schema.states import QuestionStatus, RunState

RUN_STATES = tuple(map(str, RunState))
"""The states by which runs are filtered."""


class ListedRun(Struct, frozen=True, kw_only=True):
    """A run in a list; total: the number of its questions; questions: by status; repeat: which of several it is."""

    run: str
    name: str | None
    tags: tuple[str, ...]
    state: RunState
    total: int
    questions: dict[str, int]
    created_at: datetime
    desired_state: str
    priority: int
    system: str
    dataset: str
    corpus: str | None
    corpora: tuple[str, ...]
    model: str
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
    filters: Sequence[RunFilter] = (),
    *,
    limit: int | None = None,
    after: str | None = None,
    order: RunOrder = "newest",
) -> RunListPage:
    """A page of the runs for which all filters hold; after: it begins behind this run.

    Raises what `resolve_run` does.
    """
    behind = None if after is None else resolve_run(connection, after)
    records = list_runs(connection, filters, limit=limit, after=behind, order=order)
    full = limit is not None and len(records) == limit
    more = count_runs(connection, filters, after=records[-1].run.id, order=order) if full and records else 0
    return RunListPage(runs=tuple(map(_listed, records)), more=more)


def _listed(each: RunSummary) -> ListedRun:
    return ListedRun(
        run=each.run.id,
        name=each.labels.name,
        tags=each.labels.tags,
        state=each.state,
        total=sum(each.questions.values()),
        questions=each.questions,
        created_at=each.run.created_at,
        desired_state=each.run.desired_state,
        priority=each.run.priority,
        system=each.run.system,
        dataset=each.run.dataset,
        corpus=each.run.corpus,
        corpora=tuple(each.run.corpora),
        model=each.run.model,
        repeat=read_repeat(each.run.provenance),
    )


def read_filter(text: str) -> RunFilter:
    """The filter that a person writes as KEY=VALUE, or as a text; raises InputError with all keys, or all states."""
    key, equals, value = text.partition("=")
    if not equals:
        return RunFilter(None, text)
    if key not in KEYS:
        raise InputError(f"{unknown('key', key, KEYS)}; a text without = is looked for in ids and labels")
    if key == "state" and value not in RUN_STATES:
        raise InputError(refused_choice("state", value, RUN_STATES))
    return RunFilter(key, value)
