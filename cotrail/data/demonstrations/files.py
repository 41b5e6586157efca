"""Demonstration files, in the format of those that the authors of IRCoT released.

A demonstration begins with a line `# METADATA: {"qid": "..."}`. Any number of paragraphs follow, each a line
`Wikipedia Title: ...` and its text, then the question after `Q: ` (the Flan files put an instruction on a line of its
own before it) and the answer after `A: `. Blank lines separate the paragraphs and the question; further blank lines
separate the demonstrations.
"""

import json
from collections import Counter
from pathlib import Path
from typing import NoReturn

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.input_limits import MAX_SMALL_FILE_BYTES
from cotrail.common.storable_text import storable
from cotrail.common.text_files import read_text
from cotrail.core.answer_extraction import stated_answer
from cotrail.core.demonstrations import WORDS, AnswerForm, Demonstration, Demonstrations
from cotrail.core.paragraphs import Paragraph
from cotrail.errors import DemonstrationError

_METADATA = "# METADATA:"
_TITLE = "Wikipedia Title:"


class _Metadata(Struct, frozen=True):
    qid: str


class _Lines(Struct, frozen=True):
    """Consecutive lines of a file; first: the number of the first of them, for errors."""

    path: Path
    first: int
    lines: tuple[str, ...]

    def part(self, start: int, stop: int | None = None) -> "_Lines":
        return _Lines(self.path, self.first + start, self.lines[start:stop])

    def split(self, starts: list[int]) -> list["_Lines"]:
        return [self.part(start, stop) for start, stop in zip(starts, [*starts, None][1:], strict=True)]

    def starting(self, prefix: str) -> list[int]:
        return [i for i, line in enumerate(self.lines) if line.startswith(prefix)]

    def text(self) -> str:
        return "\n".join(self.lines).rstrip()

    def refuse(self, problem: str) -> NoReturn:
        raise DemonstrationError(f"{self.path}, line {self.first}: {problem}")


def read_demonstrations(path: Path) -> Demonstrations:
    """Read the demonstrations of a file, in its order; DemonstrationError names the line that can't be read."""
    lines = _Lines(path, 1, tuple(_text(path).split("\n")))
    starts = lines.starting(_METADATA)
    if not starts:
        lines.refuse(f"a demonstration begins with a line `{_METADATA} {{...}}`, and the file has none")
    if before := lines.part(0, starts[0]).text().strip():
        lines.refuse(f"{before[:40]!r} stands before the first line `{_METADATA} {{...}}`")
    items = [_demonstration(part) for part in lines.split(starts)]
    _check_ids(path, [item.id for item in items])
    return Demonstrations(items=tuple(items))


def write_demonstrations(demonstrations: Demonstrations) -> str:
    """The content of a file of these demonstrations; byte for byte a released file if they were read from it."""
    return WORDS["ircot"].gap.join(
        f"{_METADATA} {json.dumps({'qid': item.id})}\n{item.render()}" for item in demonstrations.items
    )


def in_form(demonstrations: Demonstrations, form: AnswerForm) -> Demonstrations:
    """Convert demonstrations to an answer form.

    A chain of thought becomes the answer that it states. Direct answers stay as they are. DemonstrationError: direct
    answers can't become chains, and a mixture of both forms can't be told apart reliably.
    """
    answers = [stated_answer(item.answer) for item in demonstrations.items]
    if None in answers and any(answers):
        item = demonstrations.items[answers.index(None)]
        raise DemonstrationError(
            f'demonstration {item.id} states no answer (" answer is: ...") while others do: '
            "use a file of chains of thought or a file of answers"
        )
    if form is AnswerForm.COT:
        if demonstrations.items and not any(answers):
            raise DemonstrationError("these demonstrations have answers alone: use a file with chains of thought")
        return demonstrations
    items = (replace(d, answer=s or d.answer) for d, s in zip(demonstrations.items, answers, strict=True))
    return Demonstrations(items=tuple(items))


def _text(path: Path) -> str:
    text = read_text(path, DemonstrationError, MAX_SMALL_FILE_BYTES)
    if not text.strip():
        raise DemonstrationError(f"{path} is empty: it needs at least one demonstration")
    return text


def _demonstration(lines: _Lines) -> Demonstration:
    qid = _qid(lines)
    questions = [i for i in lines.starting("Q: ") if not lines.lines[i - 1].strip() or i == 1]
    if not questions:
        lines.refuse(f"demonstration {qid} has no line `Q: ...` of its own")
    question = lines.part(questions[-1])
    answers = question.starting("A:")
    if not answers:
        question.refuse(f"no line `A: ...` follows the question of demonstration {qid}")
    answer = question.part(answers[0])
    return Demonstration(
        id=qid,
        paragraphs=_paragraphs(lines.part(1, questions[-1]), qid),
        question=question.part(0, answers[0]).text().removeprefix("Q: "),
        answer=_answer(answer, qid),
    )


def _qid(lines: _Lines) -> str:
    try:
        qid = msgspec.json.decode(lines.lines[0].removeprefix(_METADATA), type=_Metadata).qid
    except (msgspec.MsgspecError, RecursionError) as error:
        lines.refuse(f'`{_METADATA} {{"qid": "..."}}` expected: {error}')
    if not qid or storable(qid) != qid:
        lines.refuse("the qid is empty or holds characters that can't be stored")
    return qid


def _answer(lines: _Lines, qid: str) -> str:
    text = lines.text().removeprefix("A:").strip()
    if not text:
        lines.refuse(f"the answer of demonstration {qid} is empty")
    if "\n" in text:
        lines.part(1).refuse(f"the answer of demonstration {qid} has more than one line")
    return text


def _paragraphs(lines: _Lines, qid: str) -> tuple[Paragraph, ...]:
    starts = lines.starting(_TITLE)
    if before := lines.part(0, starts[0] if starts else None).text().strip():
        lines.refuse(f"{before[:40]!r} belongs to no paragraph: `{_TITLE} ...` comes first")
    return tuple(_paragraph(part, f"{qid}/{number}") for number, part in enumerate(lines.split(starts), start=1))


def _paragraph(lines: _Lines, identifier: str) -> Paragraph:
    title = lines.lines[0].removeprefix(_TITLE).strip()
    text = lines.part(1).text()
    if not title or not text.strip():
        lines.refuse("a paragraph needs a title and a text")
    return Paragraph(id=identifier, title=title, text=text)


def _check_ids(path: Path, ids: list[str]) -> None:
    for qid, times in Counter(ids).items():
        if times > 1:
            raise DemonstrationError(f"{path}: the qid {qid} is there twice")
