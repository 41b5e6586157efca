"""Check of a step's attempts: one per claim, by rising epochs, the last one repeating the step's own columns."""

from collections.abc import Iterator

from cotrail.audit.findings import Change, Finding
from cotrail.audit.question_rows import StepRows
from cotrail.audit.records import Row, number


class AttemptCheck:
    """Checks the attempts of a step; key: that of its question."""

    def __init__(self, rows: StepRows, key: str) -> None:
        self._step, self._attempts, self._key = rows.step, rows.attempts, key

    @property
    def ending(self) -> Row | None:
        """The attempt of the last claim."""
        return next((each for each in self._attempts if each["epoch"] == self._step["epoch"]), None)

    def of_open_step(self) -> Iterator[Finding]:
        """Attempts of a step that hasn't ended: none of them ended it, and only the last one may be running."""
        yield from self.epochs()
        running = self._step["state"] == "running"
        for attempt in self._attempts:
            under_way = running and attempt["epoch"] == self._step["epoch"]
            if attempt["outcome"] in ("finished", "cancelled") or under_way != (attempt["outcome"] is None):
                yield self._changed(attempt, "outcome", f"its step is {self._step['state']}")
            elif (attempt["ended_at"] is None) != (attempt["outcome"] is None):
                yield self._changed(attempt, "ended_at", f"its outcome is {attempt['outcome']}")

    def of_ended_step(self) -> Iterator[Finding]:
        """Attempts of an ended step: the last one is there and, if it ended the step, repeats the step's columns."""
        numbered = list(self.epochs())
        yield from numbered
        ending = self.ending
        # A cancelled step may have been cancelled between two attempts: then its last attempt didn't end it.
        if numbered or ending is None or (self._step["state"] == "cancelled" and ending["outcome"] != "cancelled"):
            return
        repeated = {
            "worker": self._step["worker"],
            "started_at": self._step["started_at"],
            "ended_at": self._step["finished_at"],
            "outcome": self._step["state"],
            "error": None,
        }
        for name, value in repeated.items():
            if ending[name] != value:
                yield self.contradicted(ending, name, value)

    def epochs(self) -> Iterator[Finding]:
        """Epochs that were used twice or lie in the future, and a missing attempt that the step itself tells of."""
        last = 0
        for attempt in self._attempts:
            epoch = number(attempt, "epoch")
            if not last < epoch <= number(self._step, "epoch"):
                yield self._found("added", f"the step was claimed {self._step['epoch']} times", epoch)
            last = epoch
        if self.ending is None and not self._given_back():
            detail = f"the step was claimed at {self._step['started_at']}"
            yield self._found("removed", detail, number(self._step, "epoch"))

    def contradicted(self, attempt: Row, column: str, value: str | None) -> Finding:
        """The finding that an attempt's column differs from what its step says."""
        return self._changed(attempt, column, f"its step says {value!r}")

    def _given_back(self) -> bool:
        """Return whether the last claim was deferred: the step is as the attempt before it, or none, left it.

        A claim that is deferred leaves no attempt, since nothing was done for it; only the epoch tells of it.
        """
        if self._step["state"] in ("finished", "failed"):
            return False
        latest = self._attempts[-1] if self._attempts else {}
        return all(latest.get(name) == self._step[name] for name in ("worker", "started_at"))

    def _changed(self, attempt: Row, column: str, detail: str) -> Finding:
        return self._found("changed", detail, number(attempt, "epoch"), column)

    def _found(self, change: Change, detail: str, epoch: int, column: str | None = None) -> Finding:
        return Finding(
            table="attempts",
            what=change,
            detail=detail,
            question=self._key,
            step=number(self._step, "sequence"),
            epoch=epoch,
            column=column,
        )
