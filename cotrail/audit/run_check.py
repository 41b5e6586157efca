"""Check of a run's own row, and of its experiment's."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.audit.changed_columns import GuessBudget, changed_column
from cotrail.audit.findings import Finding
from cotrail.audit.question_check import RunContext
from cotrail.audit.records import Row, number, text
from cotrail.audit.referenced_contents import UNREADABLE
from cotrail.audit.row_digests import run_digest, run_opened
from cotrail.core.binding import Binding

STATES = ("active", "paused", "cancelled")
"""The states in which a run may be closed."""

PRUNED = "pruned"


class QuestionTotals(Struct, frozen=True, kw_only=True):
    """Totals over a run's questions.

    count: their number; root: the root of the Merkle tree over their digests.
    ended: whether all of them have ended; sound: whether there is no finding about any of them.
    """

    count: int
    root: str
    ended: bool
    sound: bool


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


def check_run(run: Row | None, experiment: Row | None, asked: QuestionTotals) -> list[Finding]:
    """Check a run's row, and its experiment's."""
    if run is None:
        return [Finding(table="runs", what="removed", detail="there is none")]
    return list(_RunCheck(run, experiment, asked).findings())


def digest_of_run(run: Row, asked: QuestionTotals) -> str | None:
    """A run's digest; None while questions are open."""
    return run_digest(run, asked.root) if asked.ended else None


class _RunCheck:
    """The checks of one run."""

    def __init__(self, run: Row, experiment: Row | None, asked: QuestionTotals) -> None:
        self.run, self.experiment, self.asked = run, experiment, asked
        self.guesses = GuessBudget()
        self.sealed = run["digest"] is not None and run_digest(run, asked.root) == run["digest"]

    def findings(self) -> Iterator[Finding]:
        """Check the row as it was submitted, then as the run ended; only the first failure is reported."""
        if self.run["experiment_id"] is not None and self.experiment is None:
            yield self._of_experiment("removed", "its run refers to it")
        elif run_opened(self.run, self.experiment) != self.run["opened"]:
            yield self._reconfigured()
        elif self.run["digest"] is not None and self.asked.sound:
            if not self.asked.ended:
                yield self._found("it has a digest, and questions of it haven't ended", column="digest")
            elif not self.sealed:
                yield self._unsealed()
        elif self.run["state"] not in (*STATES, PRUNED):
            yield self._found(f"no run is {self.run['state']}", column="state")

    def _reconfigured(self) -> Finding:
        if self.sealed:
            return self._of_experiment("changed", "its run's configuration covers another")
        if self._digest({**self.run, "opened": run_opened(self.run, self.experiment)}) == self.run["digest"]:
            return self._found("it isn't the digest of the configuration", column="opened")
        values: dict[str, Iterable[str | None]] = {"size": (str(self.asked.count),), "reuse": ("true", "false")}
        changed = changed_column(self.run, text(self.run, "opened"), self._opened, values, self.guesses)
        if changed is not None:
            return self._found(f"it held {changed[1]!r}", column=changed[0])
        ambiguous = self.experiment is not None and self.run["digest"] is None
        detail = "its configuration isn't as it was submitted"
        return self._found(detail, perhaps=("experiments",) if ambiguous else ())

    def _unsealed(self) -> Finding:
        values = {"state": STATES, "priority": ("0",)}
        changed = changed_column(self.run, text(self.run, "digest"), self._digest, values, self.guesses)
        if changed is not None:
            return self._found(f"it held {changed[1]!r}", column=changed[0])
        return self._found("its digest is another one than that of its row and its questions")

    def _opened(self, run: Row) -> str:
        return run_opened(run, self.experiment)

    def _digest(self, run: Row) -> str:
        return run_digest(run, self.asked.root)

    def _of_experiment(self, what: Any, detail: str) -> Finding:
        run = text(self.run, "id")
        if self.sealed or (what == "removed" and self.run["digest"] is None):
            return Finding(table="experiments", what=what, run=run, detail=detail)
        return Finding(table="runs", what="changed", run=run, detail=detail, column="experiment_id")

    def _found(self, detail: str, **more: Any) -> Finding:
        return Finding(table="runs", what="changed", run=text(self.run, "id"), detail=detail, **more)


def _binding(run: Row) -> Binding | None:
    try:
        return Binding(
            model=text(run, "model"),
            profile=text(run, "profile"),
            temperature=float(text(run, "temperature")),
            seed=number(run, "seed"),
            corpus=text(run, "corpus_revision"),
            embedder=text(run, "embedder"),
            entailer=text(run, "entailer"),
            knowledge=msgspec.json.decode(text(run, "knowledge")),
        )
    except UNREADABLE:
        return None
