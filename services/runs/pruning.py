"""Removal of runs, as a person asks for it."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import Struct
from sqlalchemy import Connection, Engine

from cotrail.errors import InputError, UnknownNameError
from cotrail.models.commands import pruning
from cotrail.models.commands.pruning import Pruned as Pruned
from cotrail.models.commands.pruning import Weight as Weight
from cotrail.models.queries.runs import resolve_run

Report = Callable[[Pruned], None]
"""Called with what was removed so far."""


class PrunedRuns(Struct, frozen=True, kw_only=True):
    """Runs to remove; weight: their size; removed: the rows that went, None before."""

    runs: tuple[str, ...]
    weight: Weight
    removed: Pruned | None = None


def choose(connection: Connection, runs: Sequence[str], older_than: float | None) -> PrunedRuns:
    """The runs to remove, first those whose removal was interrupted; InputError where none is named.

    older_than: takes all that ended at least this many days ago too.
    """
    # An interrupted removal left a run without some of its rows, so it is completed first in every case.
    ids = pruning.begun(connection)
    ids += (resolve_run(connection, run) for run in runs)
    if older_than is not None:
        ids += pruning.ended_before(connection, older_than)
    ids = list(dict.fromkeys(ids))
    if not runs and older_than is None and not ids:
        raise InputError("say which runs: by their ids, or with --older-than DAYS")
    return PrunedRuns(runs=tuple(ids), weight=pruning.weigh(connection, ids))


def prune(engine: Engine, runs: Sequence[str], report: Report) -> Pruned:
    """Removes runs permanently; those that aren't there any more are left out.

    Raises InputError where one hasn't ended, or a name may be several.
    """
    total = Pruned()
    for chunk in pruning.prune(engine, _still_there(engine, runs)):
        total = Pruned(**{name: getattr(total, name) + getattr(chunk, name) for name in Pruned.__struct_fields__})
        report(total)
    return total


def _still_there(engine: Engine, runs: Sequence[str]) -> list[str]:
    """The ids of these runs, without those that another process has removed meanwhile."""
    ids = []
    with engine.connect() as connection:
        for run in runs:
            with suppress(UnknownNameError):
                ids.append(resolve_run(connection, run))
    return list(dict.fromkeys(ids))
