"""A run's questions, as they come: how many there are, at which positions, and the digest over all of them."""

import hashlib

from msgspec.structs import replace

from cotrail.audit.findings import Finding
from cotrail.audit.questions import STATUSES, Checked, QuestionRows, RunOf
from cotrail.audit.records import Row, number, text
from cotrail.audit.runs import Asked
from cotrail.audit.seals import earlier_attempts, question_opened, step_digest
from cotrail.audit.steps import ENDED, StepRows

MAX_COMPARED = 1000
"""How many misplaced questions are held against each other's places."""


class Questions:
    """The questions so far, and what is wrong with them."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.foreign: list[StepRows] = []
        self.open = self.open_steps = 0
        self._digests = hashlib.sha256()
        self._positions: set[int] = set()
        self._last = -1
        self._misplaced: list[tuple[Row, Finding]] = []
        self._vague: list[tuple[Row, Finding]] = []

    def take(self, rows: QuestionRows, checked: Checked) -> None:
        """Takes in a question that has been checked."""
        question, position = rows.question, number(rows.question, "position")
        self._note_place(text(question, "key"), position)
        self.findings += checked.findings
        if checked.misplaced and len(self._misplaced) < MAX_COMPARED:
            self._misplaced.append((question, checked.findings[0]))
        if checked.vague:
            self._vague.append((question, checked.findings[-1]))
        self._digests.update((question["digest"] or "").encode())
        self.open += question["status"] not in STATUSES
        self.open_steps += sum(each.step["state"] not in ENDED for each in rows.steps)

    def end(self, run: RunOf, size: int | None) -> Asked:
        """Finds what only all of them tell."""
        due = self._last + 1 if size is None else size
        missing = [position for position in range(due) if position not in self._positions]
        self._place(run, missing)
        for position in missing:
            detail = f"there is none at position {position}"
            self.findings.append(Finding(table="questions", what="removed", detail=detail))
        if size is not None and len(self._positions) > size:
            detail = f"there are {len(self._positions)}, and the run was submitted with {size}"
            self.findings.append(Finding(table="questions", what="added", detail=detail))
        self._assign()
        return Asked(
            count=len(self._positions),
            digests=self._digests.hexdigest(),
            ended=not self.open,
            sound=not any(finding.table == "questions" for finding in self.findings),
        )

    def _note_place(self, key: str, position: int) -> None:
        if position in self._positions:
            detail = f"there is another one at position {position}"
            self.findings.append(Finding(table="questions", what="added", question=key, detail=detail))
        elif position < self._last:
            detail = f"it stands behind the one at position {self._last}"
            self.findings.append(Finding(table="questions", what="reordered", question=key, detail=detail))
        self._positions.add(position)
        self._last = max(self._last, position)

    def _place(self, run: RunOf, missing: list[int]) -> None:
        """Says of questions that aren't as submitted where they have merely changed places."""
        places = [text(question, "position") for question, _ in self._misplaced] + [str(each) for each in missing[:1]]
        for question, finding in self._misplaced:
            for place in places:
                moved = {**question, "position": place}
                if question["opened"] in [question_opened(moved, opened) for opened in run.opened]:
                    said = replace(finding, what="reordered", column="position", detail=f"its position was {place}")
                    self._instead(finding, said)
                    break

    def _assign(self) -> None:
        """Says of steps that are no question's which one they belonged to."""
        explained = any(finding.table == "questions" and not finding.perhaps for finding in self.findings)
        for rows in self.foreign:
            step = number(rows.step, "sequence")
            vague = next((each for each in self._vague if _belonged(rows, each[0])), None)
            if vague is not None:
                question, finding = vague
                detail = f"it belonged to the question with the id {question['id']}"
                said = replace(finding, table="steps", what="changed", step=step, column="question_id", perhaps=())
                self._instead(finding, replace(said, detail=detail))
            elif not explained:
                detail = f"it belongs to no question of the run; its id is {rows.step['id']}"
                self.findings.append(Finding(table="steps", what="added", step=step, detail=detail))

    def _instead(self, finding: Finding, said: Finding) -> None:
        self.findings[self.findings.index(finding)] = said


def _belonged(rows: StepRows, question: Row) -> bool:
    step = {**rows.step, "question_id": question["id"]}
    return step_digest(step, earlier_attempts(step, rows.attempts)) == step["digest"]
