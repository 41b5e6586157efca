"""Digests over the questions of a run, each part of them by itself: what is asked, the answers, the gold paragraphs.

Each is the SHA-256 of JSON Lines (canonical JSON, UTF-8), a line a question in the run's order: other questions, other
answers and another order have another digest. Anyone can compute them from a file of questions or from a bundle.

    asked     [id, text, passage]     the passage that its prompts show, or null
    answers   [id, [answer, ...]]
    gold      [id, [{"id": ..., "text": ..., "title": ...}, ...]]
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.audit.records import UNREADABLE, Row, text
from cotrail.common.canonical_json import canonical
from cotrail.core.questions import Question


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
        self._take(canonical([key, text, passage]), canonical([key, answers]), canonical([key, gold]))

    def add_row(self, question: Row) -> None:
        """Add a question as an audit trail has it; a column that can't be read counts as the text that it holds."""
        key = text(question, "key")
        asked = _line(question["pinned"], key, text(question, "text"))
        self._take(asked, _line(question["answers"], key), _line(question["gold"], key))

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


def _line(written: str | None, *before: str) -> bytes:
    try:
        return canonical([*before, None if written is None else msgspec.json.decode(written)])
    except UNREADABLE:
        return canonical([*before, written])
