"""The list of runs: a page of it, by filters that a person writes."""

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.nearest import refused_choice, unknown
from cotrail.errors import InputError
from cotrail.models.queries.run_filters import KEYS, RunFilter
from cotrail.models.queries.runs import RunSummary, count_runs, list_runs, resolve_run
from cotrail.models.schema.states import RunState

RUN_STATES = tuple(map(str, RunState))
"""The states by which runs are filtered."""


class RunPage(Struct, frozen=True, kw_only=True):
    """Runs, the newest first; more: how many further ones there are behind them."""

    runs: tuple[RunSummary, ...]
    more: int


def read_page(
    connection: Connection, filters: Sequence[RunFilter] = (), *, limit: int | None = None, after: str | None = None
) -> RunPage:
    """A page of the runs for which all filters hold; after: it begins behind this run.

    Raises what `resolve_run` does.
    """
    behind = None if after is None else resolve_run(connection, after)
    found = list_runs(connection, filters, limit=limit, after=behind)
    full = limit is not None and len(found) == limit
    more = count_runs(connection, filters, after=found[-1].run.id) if full and found else 0
    return RunPage(runs=tuple(found), more=more)


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
