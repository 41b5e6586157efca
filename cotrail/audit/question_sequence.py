"""A run's questions in the order of the records: their number, positions, and digests over them.

Digests over all questions, each part of them by itself, are the SHA-256 of JSON Lines (canonical JSON, UTF-8), a line a
question in the run's order: other questions, other answers and another order have another digest. Anyone can compute
them from a file of questions or from a bundle.

    asked     [id, text, passage]     the passage that its prompts show, or null
    answers   [id, [answer, ...]]
    gold      [id, [{"id": ..., "text": ..., "title": ...}, ...]]     without `facts`, which no score goes by

Merkle tree over the digests of a run's questions, as RFC 6962 (section 2.1) defines it:
A leaf is a question's digest, as hexadecimal text. Its hash is SHA-256(0x00, leaf); the hash of a node is
SHA-256(0x01, left, right) over the 32-byte hashes of its subtrees; the root of no leaves is SHA-256 of nothing. The two
prefixes keep a node from being passed off as a leaf. The left subtree is the largest full one that leaves something to
the right. Equivalently, each level pairs the nodes below it, and an odd last node moves up unchanged.
"""

from collections.abc import Callable, Iterable
from functools import reduce
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from cotrail.audit.findings import CheckedQuestion, Finding
from cotrail.audit.records import (
    ENDED_QUESTIONS,
    ENDED_STEPS,
    UNREADABLE,
    QuestionRows,
    Row,
    StepRows,
    number,
    size_of,
    text,
)
from cotrail.audit.row_digests import GuessBudget, earlier_attempts, question_opened, run_opened, step_digest
from cotrail.common.structs import canonical
from cotrail.core.binding import PINS, Binding, read_binding
from cotrail.core.questions import Question


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


class AskedQuestions(Struct, frozen=True, kw_only=True):
    """The number of a run's questions, and the digests over their parts."""

    count: int
    asked: str
    answers: str
    gold: str


class AskedDigests:
    """The digests over the questions so far, which are added in their order."""

    def __init__(self) -> None:
        self._count = 0
        self._asked, self._answers, self._gold = sha256(), sha256(), sha256()

    def add(self, key: str, text: str, passage: Any, answers: Any, gold: Any) -> None:
        """Add a question, by its id."""
        self._take(
            canonical([key, text, passage]),
            canonical([key, answers]),
            canonical([key, _scored(msgspec.to_builtins(gold))]),
        )

    def add_row(self, question: Row) -> None:
        """Add a question as an audit trail has it; a column that can't be read counts as the text that it holds."""
        key = text(question, "key")
        asked = _line(question["pinned"], key, text(question, "text"))
        self._take(asked, _line(question["answers"], key), _line(question["gold"], key, read=_scored))

    def _take(self, asked: bytes, answers: bytes, gold: bytes) -> None:
        self._count += 1
        for hashed, line in ((self._asked, asked), (self._answers, answers), (self._gold, gold)):
            hashed.update(line + b"\n")

    def end(self) -> AskedQuestions:
        """The digests over all that was added."""
        asked, answers, gold = (each.hexdigest() for each in (self._asked, self._answers, self._gold))
        return AskedQuestions(count=self._count, asked=asked, answers=answers, gold=gold)


def asked_questions(questions: Iterable[Question]) -> AskedQuestions:
    """The digests over these questions."""
    digests = AskedDigests()
    for each in questions:
        digests.add(each.id, each.text, each.pinned, each.answers, each.gold)
    return digests.end()


def _scored(gold: Any) -> Any:
    """Gold paragraphs without the sentences in them, by which no score goes."""
    if not isinstance(gold, list | tuple):
        return gold
    return [
        {key: value for key, value in each.items() if key != "facts"} if isinstance(each, dict) else each
        for each in gold
    ]


def _same(value: Any) -> Any:
    return value


def _line(written: str | None, *before: str, read: Callable[[Any], Any] = _same) -> bytes:
    try:
        return canonical([*before, None if written is None else read(msgspec.json.decode(written))])
    except UNREADABLE:
        return canonical([*before, written])


class MerkleTree:
    """Incremental tree: keeps only the hash of each full subtree, about log2(leaves) of them."""

    def __init__(self) -> None:
        self._full: list[tuple[int, bytes]] = []

    def add(self, leaf: str) -> None:
        """Adds the next leaf."""
        # As in a binary counter: a new full subtree merges with its left neighbour as long as both are equally high.
        height, node = 0, sha256(b"\0" + leaf.encode()).digest()
        while self._full and self._full[-1][0] == height:
            node = _joined(self._full.pop()[1], node)
            height += 1
        self._full.append((height, node))

    def root(self) -> str:
        """The root over all leaves so far, in hexadecimal."""
        if not self._full:
            return sha256().hexdigest()
        nodes = [node for _, node in reversed(self._full)]
        return reduce(lambda right, left: _joined(left, right), nodes).hex()


def _joined(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


MAX_COMPARED = 1000
"""Maximum number of misplaced questions whose positions are tried on each other."""

MOST_KEPT_BYTES = 2**20
"""Maximum bytes of a question that is kept in memory to explain findings."""


class QuestionTotals(Struct, frozen=True, kw_only=True):
    """Totals over a run's questions.

    count: their number; root: the root of the Merkle tree over their digests.
    ended: whether all of them have ended; sound: whether there is no finding about any of them.
    """

    count: int
    root: str
    ended: bool
    sound: bool


class QuestionSequence:
    """The questions so far, and the findings about them."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.foreign: list[StepRows] = []
        self.open = self.open_steps = 0
        self._tree = MerkleTree()
        self._count = 0
        self._next = 0
        self._gaps: list[range] = []
        self._guesses = GuessBudget()
        self._misplaced: list[tuple[Row, Finding]] = []
        self._vague: list[tuple[Row, Finding]] = []

    def take(self, rows: QuestionRows, checked: CheckedQuestion) -> None:
        """Add a question that has been checked."""
        question, position = rows.question, number(rows.question, "position")
        self._note_place(text(question, "key"), position)
        self.findings += checked.findings
        small = size_of(question) <= MOST_KEPT_BYTES
        if checked.misplaced and small and len(self._misplaced) < MAX_COMPARED:
            self._misplaced.append((question, checked.findings[0]))
        if checked.vague and small:
            self._vague.append((question, checked.findings[-1]))
        self._tree.add(question["digest"] or "")
        self.open += question["status"] not in ENDED_QUESTIONS
        self.open_steps += sum(each.step["state"] not in ENDED_STEPS for each in rows.steps)

    def end(self, run: RunContext, size: int | None) -> QuestionTotals:
        """Complete the findings with those that need all questions: gaps, swaps, steps of no question."""
        if size is not None:
            self._gaps.append(range(self._next, max(self._next, size)))
        gaps = [cut for gap in self._gaps if (cut := gap if size is None else gap[: max(0, size - gap.start)])]
        self._place(run, gaps)
        for gap in gaps:
            self.findings.append(Finding(table="questions", what="removed", detail=_missing(gap)))
        if size is not None and self._count > size:
            detail = f"there are {self._count}, and the run was submitted with {size}"
            self.findings.append(Finding(table="questions", what="added", detail=detail))
        self._assign()
        return QuestionTotals(
            count=self._count,
            root=self._tree.root(),
            ended=not self.open,
            sound=not any(finding.table == "questions" for finding in self.findings),
        )

    @property
    def faults(self) -> int:
        """Lower bound of the number of findings so far."""
        return len(self.findings) + len(self._gaps) + len(self.foreign)

    def _note_place(self, key: str, position: int) -> None:
        if position >= self._next:
            if position > self._next:
                self._gaps.append(range(self._next, position))
            self._next = position + 1
        elif not self._fill(position):
            detail = f"there is another one at position {position}"
            self.findings.append(Finding(table="questions", what="added", question=key, detail=detail))
            return
        else:
            detail = f"it comes after the one at position {self._next - 1}"
            self.findings.append(Finding(table="questions", what="reordered", question=key, detail=detail))
        self._count += 1

    def _fill(self, position: int) -> bool:
        """Remove a position from the gaps; return whether it was in one."""
        for place, gap in enumerate(self._gaps):
            if position in gap:
                rest = range(gap.start, position), range(position + 1, gap.stop)
                self._gaps[place : place + 1] = [each for each in rest if each]
                return True
        return False

    def _place(self, run: RunContext, missing: list[range]) -> None:
        """Explain questions that differ from their submission by a swap of positions, where that is so."""
        places = [text(question, "position") for question, _ in self._misplaced] + [
            str(gap.start) for gap in missing[:1]
        ]
        for question, finding in self._misplaced:
            for place in places:
                if not self._guesses.may(question):
                    return
                moved = {**question, "position": place}
                if question["opened"] in [question_opened(moved, opened) for opened in run.opened]:
                    explanation = replace(
                        finding, what="reordered", column="position", detail=f"its position was {place}"
                    )
                    self._instead(finding, explanation)
                    break

    def _assign(self) -> None:
        """Explain steps that belong to no question by the question that they were taken from, where it is known."""
        explained = any(finding.table == "questions" and not finding.perhaps for finding in self.findings)
        for rows in self.foreign:
            step = number(rows.step, "sequence")
            vague = next((each for each in self._vague if self._belonged(rows, each[0])), None)
            if vague is not None:
                question, finding = vague
                detail = f"it belonged to the question with the id {question['id']}"
                explanation = replace(
                    finding, table="steps", what="changed", step=step, column="question_id", perhaps=()
                )
                self._instead(finding, replace(explanation, detail=detail))
            elif not explained:
                detail = f"it belongs to no question of the run; its id is {rows.step['id']}"
                self.findings.append(Finding(table="steps", what="added", step=step, detail=detail))

    def _instead(self, finding: Finding, explanation: Finding) -> None:
        """Replace a finding by a better explanation; a row that lost several others gets one for each."""
        if finding in self.findings:
            self.findings[self.findings.index(finding)] = explanation
        else:
            self.findings.append(explanation)

    def _belonged(self, rows: StepRows, question: Row) -> bool:
        step = {**rows.step, "question_id": question["id"]}
        if not self._guesses.may(step):
            return False
        return step_digest(step, earlier_attempts(step, rows.attempts)) == step["digest"]


def _missing(gap: range) -> str:
    if len(gap) == 1:
        return f"there is none at position {gap.start}"
    return f"there are none at the positions {gap.start} to {gap.stop - 1}"
