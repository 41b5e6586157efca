"""Digests over the questions of a run, each part of them by itself: what is asked, the answers, the gold paragraphs.

Each is the SHA-256 of JSON Lines (canonical JSON, UTF-8), a line a question in the run's order: other questions, other
answers and another order have another digest. Anyone can compute them from a file of questions or from a bundle.

    asked     [id, text, passage]     the passage that its prompts show, or null
    answers   [id, [answer, ...]]
    gold      [id, [{"id": ..., "text": ..., "title": ...}, ...]]     without `facts`, which no score goes by
"""

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct, field

from cotrail.audit.records import UNREADABLE, Row, number, text
from cotrail.audit.row_digests import GuessBudget, run_opened
from cotrail.common.structs import canonical
from cotrail.core.binding import PINS, Binding, read_binding
from cotrail.core.questions import Question

# Data of a run that its questions are checked against.


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
