"""Verification of a run's records against their digests and against each other.

Every digest is recomputed from the columns. Where one digest covers several rows, other rows that repeat their values
tell which of them was changed.

Steps that people edited, as a verification names them.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from typing import Any

from cotrail.audit import records
from cotrail.audit import records as audited
from cotrail.audit.findings import MOST_FINDINGS, CheckedQuestion, EditedStep, Finding, Verification
from cotrail.audit.question_sequence import AskedDigests, QuestionSequence, QuestionTotals, RunContext, run_context
from cotrail.audit.referenced_contents import (
    ContentOrder,
    ReferencedContents,
    edit_of,
    references_of_collected,
    references_of_run,
)
from cotrail.audit.row_digests import changed_column, question_digest, question_opened
from cotrail.audit.run_check import check_plan, check_run, digest_in, digest_of_run, is_imported, wrong_version
from cotrail.audit.step_check import StepContext, check_step
from cotrail.core.history import ANSWER

_UNENDED = {
    "open": ("digest", "answer", "sentences", "collected", "weighing", "ended_by", "reason", "finished_at"),
    "blocked": ("digest", "answer", "sentences", "collected", "weighing", "ended_by"),
}
"""The other statuses, with the columns that must then be NULL."""


def check_question(rows: records.QuestionRows, run: RunContext, contents: ReferencedContents) -> CheckedQuestion:
    """Check a question: its row as submitted, its steps, its row as it ended."""
    check = _QuestionCheck(rows, run, contents)
    _use_collected(rows.question, contents)
    misplaced, findings = list(check.submitted()), list(islice(check.steps(), MOST_FINDINGS + 1))
    if not any(finding.table == "steps" for finding in findings):
        findings += check.following()
    # A digest covers all of these rows. Once a changed row is named, a digest that covers it adds no information.
    ended = [] if misplaced or any(finding.table == "steps" for finding in findings) else list(check.ended())
    return CheckedQuestion(
        findings=(*misplaced, *findings, *ended),
        misplaced=bool(misplaced),
        vague=any(finding.perhaps for finding in ended),
    )


class _QuestionCheck:
    def __init__(self, rows: records.QuestionRows, run: RunContext, contents: ReferencedContents) -> None:
        self.rows, self.question, self.run, self.contents = rows, rows.question, run, contents
        self.key = records.text(rows.question, "key")
        self.opened = self._opened()
        self.heads = records.heads_of(self.opened, (each.step["digest"] or "" for each in rows.steps))

    def submitted(self) -> Iterator[Finding]:
        expected = [question_opened(self.question, opened) for opened in self.run.opened]
        if not expected or self.question["opened"] in expected:
            return
        if self.opened in expected:
            yield self._found("questions", "changed", "its steps go by another", column="opened")
            return
        values = {"run_id": (self.run.id,), "evidence": ("[]",), "kind": ("",), "pinned": (None,), "judged": (None,)}
        for opened in self.run.opened:
            recorded = records.text(self.question, "opened")
            digest = partial(question_opened, run_opened=opened)
            changed = changed_column(self.question, recorded, digest, values, self.run.guesses)
            if changed is not None:
                yield self._found("questions", "changed", f"it held {changed[1]!r}", column=changed[0])
                return
        yield self._found("questions", "changed", "it isn't as it was submitted")

    def steps(self) -> Iterator[Finding]:
        id_ = records.text(self.question, "id")
        around = StepContext(question=id_, key=self.key, run=self.run, heads=self.heads, contents=self.contents)
        for rows in self.rows.steps:
            yield from check_step(rows, around)
        yield from self._sequences()

    def following(self) -> Iterator[Finding]:
        """Check for rows that belong to no step, and the hash chain: each step's `previous` seals those before it."""
        yield from self._strays()
        yield from self._heads()

    def ended(self) -> Iterator[Finding]:
        """Check the question's row as it ended, and that its digest covers all steps."""
        status = records.text(self.question, "status")
        under_way = [each.step for each in self.rows.steps if each.step["state"] not in records.ENDED_STEPS]
        if status not in records.ENDED_QUESTIONS:
            yield from self._unended(status)
            return
        if self.question["digest"] is None:
            yield self._found("questions", "changed", f"it is {status} and has no digest", column="digest")
        elif self._digest(self.question) != self.question["digest"]:
            yield self._unsealed()
        for step in under_way:
            detail = f"its question is {status}, and it is {step['state']}"
            yield self._found("steps", "changed", detail, step=records.number(step, "sequence"))

    def _unended(self, status: str) -> Iterator[Finding]:
        """Check that a question that hasn't ended has none of the columns of an end."""
        if status not in _UNENDED:
            yield self._found("questions", "changed", f"no question is {status}", column="status")
            return
        held = next((name for name in _UNENDED[status] if self.question.get(name) is not None), None)
        if held is not None:
            column = "status" if self.question["digest"] is not None else held
            detail = f"it is {status} and has {held.replace('_', ' ')}"
            yield self._found("questions", "changed", detail, column=column)

    def _opened(self) -> str:
        """The digest that the question's hash chain begins with: its row's, unless its first step names another.

        So a changed `opened` is distinguished from first steps that were changed or removed.
        """
        stored = records.text(self.question, "opened")
        if self.rows.steps:
            for opened in (stored, *(question_opened(self.question, each) for each in self.run.opened)):
                if records.head_of(opened, ()) == self.rows.steps[0].step["previous"]:
                    return opened
        return stored

    def _sequences(self) -> Iterator[Finding]:
        expected = 0
        for rows in self.rows.steps:
            sequence = records.number(rows.step, "sequence")
            if sequence > expected:
                yield self._found("steps", "removed", f"step {sequence} is there", step=expected)
            if sequence < expected:
                yield self._found("steps", "added", "it is there twice", step=sequence)
            expected = sequence + 1

    def _strays(self) -> Iterator[Finding]:
        for record in self.rows.strays:
            rank = records.number(record.row, "rank") if "rank" in record.row else None
            step = f"it refers to step {record.row['step_id']}, by id, which isn't one of its question"
            yield self._found(record.table, "added", step, rank=rank)

    def _heads(self) -> Iterator[Finding]:
        """Check that each batch of steps, yielded together, names the head over all steps before it."""
        before, suspect = 0, 0
        for previous, batch in groupby(self.rows.steps, key=lambda rows: rows.step["previous"]):
            if self.heads[before] != previous:
                yield self._broken(before, suspect)
                return
            suspect, before = before, before + len(list(batch))

    def _broken(self, before: int, suspect: int) -> Finding:
        """The finding for a batch that names an unknown head; the steps before the `suspect` one are sound."""
        if not before:
            detail = "its steps go by another, or steps before them were removed"
            return self._found("questions", "changed", detail, column="opened", perhaps=("steps",))
        detail = f"step {before} goes by another digest: this one was changed together with its own, or added"
        return self._found("steps", "changed", detail, step=records.number(self.rows.steps[suspect].step, "sequence"))

    def _digest(self, question: records.Row) -> str:
        return question_digest(question, self.heads[-1])

    def _unsealed(self) -> Finding:
        recorded = records.text(self.question, "digest")
        for place, head in enumerate(self.heads[:-1]):
            if not self.run.guesses.may(self.question):
                break
            if question_digest(self.question, head) == recorded:
                step = records.number(self.rows.steps[place].step, "sequence")
                return self._found("steps", "added", "its question had ended before it", step=step)
        changed = changed_column(self.question, recorded, self._digest, self._values(), self.run.guesses)
        if changed is not None:
            return self._found("questions", "changed", f"it held {changed[1]!r}", column=changed[0])
        detail = "its digest is another one, which covers its last steps too: one of these may have been removed"
        return self._found("questions", "changed", detail, perhaps=("steps",))

    def _values(self) -> dict[str, Any]:
        steps = [each.step for each in self.rows.steps]
        return {
            "status": records.ENDED_QUESTIONS,
            "id": {step["question_id"] for step in steps},
            "finished_at": {step["finished_at"] for step in steps},
            "reason": (None, *(step["failure"] for step in steps)),
            **dict.fromkeys(("answer", "sentences", "collected", "weighing"), (None,)),
            "ended_by": (None, ANSWER),
            "halted": (None,),
        }

    def _found(self, table: str, what: Any, detail: str, **more: Any) -> Finding:
        return Finding(table=table, what=what, detail=detail, question=self.key, **more)


def _use_collected(question: records.Row, contents: ReferencedContents) -> None:
    try:
        contents.use(references_of_collected(question))
    except records.UNREADABLE:
        return


def edited_steps(rows: audited.QuestionRows) -> Iterator[EditedStep]:
    """Find those of a question; one whose edit can't be read is named by a finding instead."""
    key = audited.text(rows.question, "key")
    for each in rows.steps:
        try:
            edit = edit_of(each.step)
        except audited.UNREADABLE:
            continue
        if edit is not None:
            yield EditedStep(question=key, step=audited.number(each.step, "sequence"), edit=edit.words)


_ABOVE = ("bundle", "experiments", "runs")
_CONTENTS = ("demonstrations", "paragraphs")

MOST_HELD_BYTES = 2**29
"""Maximum bytes of memory for each of: the rows of one question, all demonstrations, all steps of no question."""


def verify(records: Iterable[audited.Record], *, bundled: bool = False) -> Verification:
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
        self._above: dict[str, audited.Row] = {}
        self._run: RunContext | None = None
        self._question: audited.Row | None = None
        self._within: list[audited.Record] = []
        self._end: audited.Row | None = None
        self._written = hashlib.sha256()
        self._order = ContentOrder()
        self._held = Counter[str]()
        self.stopped: Finding | None = None

    def take(self, record: audited.Record) -> None:
        """Process the next record; `stopped` is set once the verification gives up."""
        if self._end is not None:
            self.findings.append(Finding(table=record.table, what="added", detail="it comes after the end"))
        if record.table == "end":
            self._end = record.row
            return
        self.counts[record.table] += 1
        if self.bundled:
            self._written.update(audited.write_record(record))
            self._order.take(record)
        elif not self._is_whole(record):
            return
        self._sort(record)
        self._stop(record)

    def _is_whole(self, record: audited.Record) -> bool:
        """Return whether a store's row holds possible values; a bundle's rows were checked when they were read."""
        try:
            audited.check_record(record)
        except (KeyError, ValueError) as error:
            self.findings.append(Finding(table=record.table, what="changed", detail=str(error)))
            return False
        return True

    def _sort(self, record: audited.Record) -> None:
        if record.table in _CONTENTS:
            self.findings += self.contents.take(record)
        elif record.table in _ABOVE:
            self._take_above(record)
        elif record.table == "questions":
            self._close_question()
            self._question = record.row
        else:
            self._within.append(record)

    def _stop(self, record: audited.Record) -> None:
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

    def _hold(self, what: str, *rows: audited.Row) -> None:
        self._held[what] += sum(map(audited.size_of, rows))

    def end(self) -> Verification:
        if self.stopped is not None:
            return self._broken_off(self.stopped)
        self._close_question()
        run, experiment = self._above.get("runs"), self._above.get("experiments")
        totals = self.questions.end(self._run_of(), None if run is None else audited.number(run, "size"))
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
            imported=run is not None and is_imported(run),
        )

    def _broken_off(self, last: Finding) -> Verification:
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
            imported=run is not None and is_imported(run),
        )

    def _take_above(self, record: audited.Record) -> None:
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
        question, within = self._question, self._within
        self._question, self._within = None, []
        if question is None:
            for record in within:
                self.findings.append(Finding(table=record.table, what="reordered", detail="no question is before it"))
            return
        self._asked.add_row(question)
        gathered = audited.gather(question, within)
        self.findings += gathered.findings
        for rows in gathered.foreign:
            self._hold("foreign steps", rows.step, *rows.attempts)
            self.questions.foreign.append(audited.StepRows(rows.step, attempts=rows.attempts))
        self.edits += islice(edited_steps(gathered.rows), MOST_FINDINGS - len(self.edits))
        self.questions.take(gathered.rows, check_question(gathered.rows, self._run_of(), self.contents))

    def _of_questions(self, of_run: list[Finding]) -> list[Finding]:
        """Findings about questions; without those about their number if the run's `size` is what was changed."""
        resized = any(finding.column == "size" for finding in of_run)
        return [finding for finding in self.questions.findings if not resized or finding.question is not None]

    def _of_plan(self, run: audited.Row | None) -> list[Finding]:
        """Find where the run isn't the planned one; where another row is named already, that is why."""
        binding = self._run_of().binding
        if run is not None and binding is not None:
            return check_plan(run, binding, self._asked.end())
        return []

    def _of_contents(self, run: audited.Row | None) -> Iterator[Finding]:
        """Find missing contents that the run refers to, and contents that nothing refers to."""
        if run is not None and self._run_of().binding is not None:
            try:
                yield from self.contents.missing(references_of_run(run))
            except audited.UNREADABLE as error:
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
        elif problem := wrong_version(audited.text(header, "cotrail"), self._above.get("runs")):
            yield Finding(table="bundle", what="changed", column="cotrail", detail=problem)
        if sound and (misplaced := self._order.end()):
            yield misplaced
        if self._end is None:
            yield Finding(table="end", what="removed", detail="the last line is missing, and maybe others before it")
        elif sound and self._end != audited.end_of(sum(self.counts.values()), self._written.hexdigest()).row:
            yield Finding(table="end", what="changed", detail="the lines before it aren't those that were written")


def _bounded(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The first `MOST_FINDINGS` findings, and one that says that there are more where that is so."""
    if len(findings) <= MOST_FINDINGS:
        return tuple(findings)
    detail = f"there are more than {MOST_FINDINGS:,} findings"
    return (*findings[:MOST_FINDINGS], Finding(table=findings[MOST_FINDINGS].table, what="changed", detail=detail))
