"""Data of a run that its questions are checked against."""

from typing import Any

import msgspec
from msgspec import Struct, field

from cotrail.audit.changed_columns import GuessBudget
from cotrail.audit.records import UNREADABLE, Row, number, text
from cotrail.audit.row_digests import run_opened
from cotrail.core.binding import PINS, Binding, read_binding


class RunContext(Struct, frozen=True, kw_only=True):
    """The run's data that its questions are checked against.

    opened: the possible digests of its configuration (recorded and recomputed), none where its row is missing.
    binding: None where its row can't be relied on. shared_in: the experiment in which its steps are shared.
    bundled: whether the records are a bundle's; guesses: the budget for explaining findings.
    """

    id: str
    opened: tuple[str, ...]
    binding: Binding | None
    shared_in: str | None
    bundled: bool
    guesses: GuessBudget = field(default_factory=GuessBudget)


def run_context(run: Row | None, experiment: Row | None, *, bundled: bool) -> RunContext:
    """The run's data that its questions are checked against."""
    if run is None:
        return RunContext(id="", opened=(), binding=None, shared_in=None, bundled=bundled)
    recorded, computed = text(run, "opened"), run_opened(run, experiment)
    return RunContext(
        id=text(run, "id"),
        opened=tuple(dict.fromkeys((recorded, computed))),
        binding=_binding(run) if recorded == computed else None,
        shared_in=run["experiment_id"] if run["reuse"] == "true" else None,
        bundled=bundled,
    )


def _binding(run: Row) -> Binding | None:
    try:
        read: dict[str, Any] = {name: text(run, name) for name in (*PINS, "corpus_revision")}
        read |= {"corpus": run["corpus"], "temperature": float(read["temperature"]), "seed": number(run, "seed")}
        return read_binding(read | {"knowledge": msgspec.json.decode(text(run, "knowledge"), type=dict[str, str])})
    except UNREADABLE:
        return None
