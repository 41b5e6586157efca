"""Check of a question: its row as submitted, the hash chain of its steps, its row as it ended."""

from collections.abc import Iterator
from functools import partial
from itertools import groupby, islice
from typing import Any

from cotrail.audit import records
from cotrail.audit.asked_questions import RunContext
from cotrail.audit.findings import MOST_FINDINGS, CheckedQuestion, Finding
from cotrail.audit.referenced_contents import ReferencedContents, references_of_collected
from cotrail.audit.row_digests import changed_column, question_digest, question_opened
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
    """The checks of one question."""

    def __init__(self, rows: records.QuestionRows, run: RunContext, contents: ReferencedContents) -> None:
        self.rows, self.question, self.run, self.contents = rows, rows.question, run, contents
        self.key = records.text(rows.question, "key")
        self.opened = self._opened()
        self.heads = records.heads_of(self.opened, (each.step["digest"] or "" for each in rows.steps))

    def submitted(self) -> Iterator[Finding]:
        """Check the question as it was submitted."""
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
        """Check each step, and that their sequence has no gaps or repetitions."""
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
        """Candidate values that the columns may have had, from the steps."""
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
    """Note that a question refers to the paragraphs that it collected."""
    try:
        contents.use(references_of_collected(question))
    except records.UNREADABLE:
        return
