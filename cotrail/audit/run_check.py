"""Check of a run's own row, and of its experiment's."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from cotrail.audit.changed_columns import GuessBudget, changed_column
from cotrail.audit.final_states import CLOSED_RUNS, PRUNED
from cotrail.audit.findings import Finding
from cotrail.audit.question_sequence import QuestionTotals
from cotrail.audit.records import Row, text
from cotrail.audit.row_digests import run_digest, run_opened


def check_run(run: Row | None, experiment: Row | None, questions: QuestionTotals) -> list[Finding]:
    """Check a run's row, and its experiment's."""
    if run is None:
        return [Finding(table="runs", what="removed", detail="there is none")]
    return list(_RunCheck(run, experiment, questions).findings())


def digest_of_run(run: Row, questions: QuestionTotals) -> str | None:
    """A run's digest; None while questions are open."""
    return run_digest(run, questions.root) if questions.ended else None


class _RunCheck:
    """The checks of one run."""

    def __init__(self, run: Row, experiment: Row | None, questions: QuestionTotals) -> None:
        self.run, self.experiment, self.questions = run, experiment, questions
        self.guesses = GuessBudget()
        self.sealed = run["digest"] is not None and run_digest(run, questions.root) == run["digest"]

    def findings(self) -> Iterator[Finding]:
        """Check the row as it was submitted, then as the run ended; only the first failure is reported."""
        if self.run["experiment_id"] is not None and self.experiment is None:
            yield self._of_experiment("removed", "its run refers to it")
        elif run_opened(self.run, self.experiment) != self.run["opened"]:
            yield self._reconfigured()
        elif self.run["digest"] is not None and self.questions.sound:
            if not self.questions.ended:
                yield self._found("it has a digest, and questions of it haven't ended", column="digest")
            elif not self.sealed:
                yield self._unsealed()
        elif self.run["desired_state"] not in (*CLOSED_RUNS, PRUNED):
            yield self._found(f"no run is {self.run['desired_state']}", column="desired_state")

    def _reconfigured(self) -> Finding:
        if self.sealed:
            return self._of_experiment("changed", "its run's configuration covers another")
        if self._digest({**self.run, "opened": run_opened(self.run, self.experiment)}) == self.run["digest"]:
            return self._found("it isn't the digest of the configuration", column="opened")
        values: dict[str, Iterable[str | None]] = {"size": (str(self.questions.count),), "reuse": ("true", "false")}
        opened = partial(run_opened, experiment=self.experiment)
        changed = changed_column(self.run, text(self.run, "opened"), opened, values, self.guesses)
        if changed is not None:
            return self._found(f"it held {changed[1]!r}", column=changed[0])
        ambiguous = self.experiment is not None and self.run["digest"] is None
        detail = "its configuration isn't as it was submitted"
        return self._found(detail, perhaps=("experiments",) if ambiguous else ())

    def _unsealed(self) -> Finding:
        values = {"desired_state": CLOSED_RUNS, "priority": ("0",)}
        changed = changed_column(self.run, text(self.run, "digest"), self._digest, values, self.guesses)
        if changed is not None:
            return self._found(f"it held {changed[1]!r}", column=changed[0])
        return self._found("its digest is another one than that of its row and its questions")

    def _digest(self, run: Row) -> str:
        return run_digest(run, self.questions.root)

    def _of_experiment(self, what: Any, detail: str) -> Finding:
        run = text(self.run, "id")
        if self.sealed or (what == "removed" and self.run["digest"] is None):
            return Finding(table="experiments", what=what, run=run, detail=detail)
        return Finding(table="runs", what="changed", run=run, detail=detail, column="experiment_id")

    def _found(self, detail: str, **more: Any) -> Finding:
        return Finding(table="runs", what="changed", run=text(self.run, "id"), detail=detail, **more)
