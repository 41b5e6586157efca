"""Verification: whether a run's records are as they were recorded, by their digests and by one another.

Every digest is computed here from the columns. What a digest covers is told apart by what other rows say of it.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator

from cotrail.audit.asked import Questions
from cotrail.audit.contents import UNREADABLE, Contents, references_of_run
from cotrail.audit.findings import Finding, Verification
from cotrail.audit.gathering import gather
from cotrail.audit.questions import RunOf, check_question
from cotrail.audit.records import Record, Row, number, write_record
from cotrail.audit.runs import check_run, digest_of_run, run_of

_ABOVE = ("bundle", "experiments", "runs")
_CONTENTS = ("demonstrations", "paragraphs")


def verify(records: Iterable[Record], *, bundled: bool = False) -> Verification:
    """What is wrong with the records of one run, whose order is that of `cotrail.audit.records`.

    bundled: whether they are those of a bundle, which has more of them.
    """
    trail = _Trail(bundled=bundled)
    for record in records:
        trail.take(record)
    return trail.end()


class _Trail:
    """The records so far, of which a question's are kept until the next one's begin."""

    def __init__(self, *, bundled: bool) -> None:
        self.bundled = bundled
        self.counts: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self.contents = Contents()
        self.questions = Questions()
        self._above: dict[str, Row] = {}
        self._run: RunOf | None = None
        self._question: Row | None = None
        self._within: list[Record] = []
        self._end: Row | None = None
        self._written = hashlib.sha256()

    def take(self, record: Record) -> None:
        """Takes in the next record."""
        if self._end is not None:
            self.findings.append(Finding(table=record.table, what="added", detail="it stands behind the end"))
        if record.table == "end":
            self._end = record.row
            return
        self.counts[record.table] += 1
        if self.bundled:
            self._written.update(write_record(record))
        if record.table in _CONTENTS:
            self.findings += self.contents.take(record)
        elif record.table in _ABOVE:
            self._take_above(record)
        elif record.table == "questions":
            self._close_question()
            self._question = record.row
        else:
            self._within.append(record)

    def end(self) -> Verification:
        """What is wrong with all of them."""
        self._close_question()
        run, experiment = self._above.get("runs"), self._above.get("experiments")
        asked = self.questions.end(self._run_of(), None if run is None else number(run, "size"))
        of_run = check_run(run, experiment, asked)
        found = [*of_run, *self.findings, *self._of_questions(of_run), *self._of_contents(run)]
        return Verification(
            run=self._run_of().id,
            digest=None if run is None else digest_of_run(run, asked),
            closed=run is not None and run["digest"] is not None,
            records=dict(self.counts),
            open_questions=self.questions.open,
            open_steps=self.questions.open_steps,
            findings=(*found, *self._of_bundle(sound=not found)),
        )

    def _take_above(self, record: Record) -> None:
        if record.table in self._above:
            self.findings.append(Finding(table=record.table, what="added", detail="it is there twice"))
        else:
            self._above[record.table] = record.row

    def _run_of(self) -> RunOf:
        if self._run is None:
            self._run = run_of(self._above.get("runs"), self._above.get("experiments"), bundled=self.bundled)
        return self._run

    def _close_question(self) -> None:
        """Checks the question whose records are there."""
        question, within = self._question, self._within
        self._question, self._within = None, []
        if question is None:
            for record in within:
                self.findings.append(Finding(table=record.table, what="reordered", detail="no question is before it"))
            return
        gathered = gather(question, within)
        self.findings += gathered.findings
        self.questions.foreign += gathered.foreign
        self.questions.take(gathered.rows, check_question(gathered.rows, self._run_of(), self.contents))

    def _of_questions(self, of_run: list[Finding]) -> list[Finding]:
        """What is wrong with questions, but for how many there are where the run's row is what is wrong."""
        resized = any(finding.column == "size" for finding in of_run)
        return [finding for finding in self.questions.findings if not resized or finding.question is not None]

    def _of_contents(self, run: Row | None) -> Iterator[Finding]:
        """What the run refers to, and what nothing refers to."""
        if run is not None and self._run_of().binding is not None:
            try:
                yield from self.contents.missing(references_of_run(run))
            except UNREADABLE as error:
                detail = f"it can't be read ({error})"
                yield Finding(table="runs", what="changed", run=run["id"], column="demonstrations", detail=detail)
        if run is not None:
            yield from self.contents.unused()

    def _of_bundle(self, *, sound: bool) -> Iterator[Finding]:
        """The lines that only a bundle has; where no record is wrong, they are those that were written."""
        if not self.bundled:
            return
        header = self._above.get("bundle")
        if header is None:
            yield Finding(table="bundle", what="removed", detail="its first line is missing")
        elif header["run"] != self._run_of().id:
            yield Finding(table="bundle", what="changed", column="run", detail="it is of another run")
        if self._end is None:
            yield Finding(table="end", what="removed", detail="the last line is missing, and maybe others before it")
        elif sound and self._end != self._due():
            yield Finding(table="end", what="changed", detail="the lines before it aren't those that were written")

    def _due(self) -> Row:
        return end_of(sum(self.counts.values()), self._written.hexdigest()).row


def end_of(records: int, sha256: str) -> Record:
    """The last line of a bundle with so many lines before it, whose bytes have this SHA-256."""
    return Record("end", {"records": str(records), "sha256": sha256})
