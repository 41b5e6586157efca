"""Verification of a run's records against their digests and against each other.

Every digest is recomputed from the columns. Where one digest covers several rows, other rows that repeat their values
tell which of them was changed.

Steps that people edited, as a verification names them.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from cotrail.audit.asked_questions import AskedDigests, RunContext, run_context
from cotrail.audit.findings import MOST_FINDINGS, EditedStep, Finding, Verification
from cotrail.audit.question_check import check_question
from cotrail.audit.question_sequence import QuestionSequence, QuestionTotals
from cotrail.audit.records import (
    UNREADABLE,
    QuestionRows,
    Record,
    Row,
    StepRows,
    check_record,
    end_of,
    gather,
    number,
    size_of,
    text,
    write_record,
)
from cotrail.audit.referenced_contents import ContentOrder, ReferencedContents, edit_of, references_of_run
from cotrail.audit.run_check import check_plan, check_run, digest_in, digest_of_run, wrong_version


def edited_steps(rows: QuestionRows) -> Iterator[EditedStep]:
    """Find those of a question; one whose edit can't be read is named by a finding instead."""
    key = text(rows.question, "key")
    for each in rows.steps:
        try:
            edit = edit_of(each.step)
        except UNREADABLE:
            continue
        if edit is not None:
            yield EditedStep(question=key, step=number(each.step, "sequence"), edit=edit.words)


_ABOVE = ("bundle", "experiments", "runs")
_CONTENTS = ("demonstrations", "paragraphs")

MOST_HELD_BYTES = 2**29
"""Maximum bytes of memory for each of: the rows of one question, all demonstrations, all steps of no question."""


def verify(records: Iterable[Record], *, bundled: bool = False) -> Verification:
    """Verify the records of one run, in the order that `cotrail.audit.records` describes.

    bundled: whether they are a bundle's, which has additional records.
    """
    trail = _Trail(bundled=bundled)
    for record in records:
        trail.take(record)
        if trail.stopped is not None:
            break
    return trail.end()


class _Trail:
    """State of a verification: the findings so far, and the records of the current question."""

    def __init__(self, *, bundled: bool) -> None:
        self.bundled = bundled
        self.counts: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self.edits: list[EditedStep] = []
        self.contents = ReferencedContents()
        self.questions = QuestionSequence()
        self._asked = AskedDigests()
        self._above: dict[str, Row] = {}
        self._run: RunContext | None = None
        self._question: Row | None = None
        self._within: list[Record] = []
        self._end: Row | None = None
        self._written = hashlib.sha256()
        self._order = ContentOrder()
        self._held = Counter[str]()
        self.stopped: Finding | None = None

    def take(self, record: Record) -> None:
        """Process the next record; `stopped` is set once the verification gives up."""
        if self._end is not None:
            self.findings.append(Finding(table=record.table, what="added", detail="it comes after the end"))
        if record.table == "end":
            self._end = record.row
            return
        self.counts[record.table] += 1
        if self.bundled:
            self._written.update(write_record(record))
            self._order.take(record)
        elif not self._is_whole(record):
            return
        self._sort(record)
        self._stop(record)

    def _is_whole(self, record: Record) -> bool:
        """Return whether a store's row holds possible values; a bundle's rows were checked when they were read."""
        try:
            check_record(record)
        except (KeyError, ValueError) as error:
            self.findings.append(Finding(table=record.table, what="changed", detail=str(error)))
            return False
        return True

    def _sort(self, record: Record) -> None:
        if record.table in _CONTENTS:
            self.findings += self.contents.take(record)
        elif record.table in _ABOVE:
            self._take_above(record)
        elif record.table == "questions":
            self._close_question()
            self._question = record.row
        else:
            self._within.append(record)

    def _stop(self, record: Record) -> None:
        """Stop once there are too many findings or too much is held in memory: forged records must not exhaust it."""
        if record.table == "questions":
            self._held["questions"] = 0
        self._held["contents"] = self._order.held_bytes
        if record.table != "paragraphs":
            self._hold("demonstrations" if record.table == "demonstrations" else "questions", record.row)
        if len(self.findings) + self.questions.faults > MOST_FINDINGS:
            detail = f"there are more than {MOST_FINDINGS:,} findings, and what follows wasn't looked at"
        elif max(self._held.values(), default=0) > MOST_HELD_BYTES:
            detail = "what belongs together takes more memory than that of any run, and what follows wasn't looked at"
        else:
            return
        self.stopped = Finding(table=record.table, what="changed", detail=detail)

    def _hold(self, what: str, *rows: Row) -> None:
        self._held[what] += sum(map(size_of, rows))

    def end(self) -> Verification:
        """Finish the verification: check what needs all records."""
        if self.stopped is not None:
            return self._broken_off(self.stopped)
        self._close_question()
        run, experiment = self._above.get("runs"), self._above.get("experiments")
        totals = self.questions.end(self._run_of(), None if run is None else number(run, "size"))
        of_run = check_run(run, experiment, totals)
        findings = [*of_run, *self.findings, *self._of_questions(of_run), *self._of_contents(run)]
        findings += [] if findings else self._of_plan(run)
        return Verification(
            run=self._run_of().id,
            digest=None if run is None else digest_of_run(run, totals),
            closed=run is not None and run["digest"] is not None,
            records=dict(self.counts),
            open_questions=self.questions.open,
            open_steps=self.questions.open_steps,
            plan=None if run is None else digest_in(run),
            findings=_bounded((*findings, *self._of_bundle(sound=not findings))),
            edits=tuple(self.edits),
        )

    def _broken_off(self, last: Finding) -> Verification:
        """The result of a verification that stopped early."""
        run, experiment = self._above.get("runs"), self._above.get("experiments")
        of_run = check_run(run, experiment, QuestionTotals(count=0, root="", ended=False, sound=False))
        findings = [*of_run, *self.findings, *self.questions.findings]
        return Verification(
            run=self._run_of().id,
            digest=None,
            closed=False,
            records=dict(self.counts),
            open_questions=self.questions.open,
            open_steps=self.questions.open_steps,
            plan=None if run is None else digest_in(run),
            findings=(*findings[:MOST_FINDINGS], last),
            edits=tuple(self.edits),
        )

    def _take_above(self, record: Record) -> None:
        if record.table in self._above:
            self.findings.append(Finding(table=record.table, what="added", detail="it is there twice"))
            return
        later = _ABOVE[_ABOVE.index(record.table) + 1 :]
        if self.counts.keys() - {*_ABOVE} or self.counts.keys() & {*later}:
            self.findings.append(Finding(table=record.table, what="reordered", detail="others stand before it"))
        self._above[record.table] = record.row

    def _run_of(self) -> RunContext:
        if self._run is None:
            self._run = run_context(self._above.get("runs"), self._above.get("experiments"), bundled=self.bundled)
        return self._run

    def _close_question(self) -> None:
        """Check the current question, whose records are complete."""
        question, within = self._question, self._within
        self._question, self._within = None, []
        if question is None:
            for record in within:
                self.findings.append(Finding(table=record.table, what="reordered", detail="no question is before it"))
            return
        self._asked.add_row(question)
        gathered = gather(question, within)
        self.findings += gathered.findings
        for rows in gathered.foreign:
            self._hold("foreign steps", rows.step, *rows.attempts)
            self.questions.foreign.append(StepRows(rows.step, attempts=rows.attempts))
        self.edits += islice(edited_steps(gathered.rows), MOST_FINDINGS - len(self.edits))
        self.questions.take(gathered.rows, check_question(gathered.rows, self._run_of(), self.contents))

    def _of_questions(self, of_run: list[Finding]) -> list[Finding]:
        """Findings about questions; without those about their number if the run's `size` is what was changed."""
        resized = any(finding.column == "size" for finding in of_run)
        return [finding for finding in self.questions.findings if not resized or finding.question is not None]

    def _of_plan(self, run: Row | None) -> list[Finding]:
        """Find where the run isn't the planned one; where another row is named already, that is why."""
        binding = self._run_of().binding
        if run is not None and binding is not None:
            return check_plan(run, binding, self._asked.end())
        return []

    def _of_contents(self, run: Row | None) -> Iterator[Finding]:
        """Find missing contents that the run refers to, and contents that nothing refers to."""
        if run is not None and self._run_of().binding is not None:
            try:
                yield from self.contents.missing(references_of_run(run))
            except UNREADABLE as error:
                detail = f"it can't be read ({error})"
                yield Finding(table="runs", what="changed", run=run["id"], column="demonstrations", detail=detail)
        if run is not None:
            yield from islice(self.contents.unused(), MOST_FINDINGS + 1)

    def _of_bundle(self, *, sound: bool) -> Iterator[Finding]:
        """Check the lines that only a bundle has; the SHA-256 of all lines matters only if no record is wrong."""
        if not self.bundled:
            return
        header = self._above.get("bundle")
        if header is None:
            yield Finding(table="bundle", what="removed", detail="its first line is missing")
        elif header["run"] != self._run_of().id:
            yield Finding(table="bundle", what="changed", column="run", detail="it is of another run")
        elif problem := wrong_version(text(header, "cotrail"), self._above.get("runs")):
            yield Finding(table="bundle", what="changed", column="cotrail", detail=problem)
        if sound and (misplaced := self._order.end()):
            yield Finding(table=misplaced.table, what="reordered", digest=misplaced.digest, detail=misplaced.detail)
        if self._end is None:
            yield Finding(table="end", what="removed", detail="the last line is missing, and maybe others before it")
        elif sound and self._end != end_of(sum(self.counts.values()), self._written.hexdigest()).row:
            yield Finding(table="end", what="changed", detail="the lines before it aren't those that were written")


def _bounded(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The first `MOST_FINDINGS` findings, and one that says that there are more where that is so."""
    if len(findings) <= MOST_FINDINGS:
        return tuple(findings)
    detail = f"there are more than {MOST_FINDINGS:,} findings"
    return (*findings[:MOST_FINDINGS], Finding(table=findings[MOST_FINDINGS].table, what="changed", detail=detail))
