"""Demonstration files, in the format of those of IRCoT's authors, and sets of demonstrations drawn from them."""

import hashlib
import json
import tomllib
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Annotated, NoReturn

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from cotrail.common.json_files import problem_of
from cotrail.common.printable_text import storable
from cotrail.common.text_files import MAX_SMALL_FILE_BYTES, opened, read_text, read_whole
from cotrail.core.answer_extraction import stated_answer
from cotrail.core.demonstrations import RELEASED as RELEASED
from cotrail.core.demonstrations import WORDS, AnswerForm, Demonstration, Demonstrations
from cotrail.core.questions import Paragraph
from cotrail.errors import DemonstrationError

# Demonstration files, in the format of those that the authors of IRCoT released.
#
# A demonstration begins with a line `# METADATA: {"qid": "..."}`. Any number of paragraphs follow, each a line
# `Wikipedia Title: ...` and its text, then the question after `Q: ` (the Flan files put an instruction on a line of its
# own before it) and the answer after `A: `. Blank lines separate the paragraphs and the question; further blank lines
# separate the demonstrations.

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
    answers can't become chains, and a mixture of both forms can't be distinguished reliably.
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


FILE = Path(__file__).with_name("released_sets.toml")

Ids = Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(min_length=1)]
Lists = Annotated[tuple[Ids, ...], Meta(min_length=1)]


def demonstration_sets(
    demonstrations: Demonstrations, seed: int, sets: int = 3, size: int = 15
) -> tuple[Demonstrations, ...]:
    """Draw `sets` sets of `size` demonstrations each; the order of the draw is that of the prompt.

    Set n depends on the ids, the seed and n alone, so all forms of the same demonstrations give the same sets, however
    their files are ordered. If there are exactly `size` demonstrations, each set is all of them in their own order.
    Raises DemonstrationError where there are fewer.
    """
    if len(demonstrations.items) < size:
        raise DemonstrationError(
            f"a set of {size} demonstrations can't be drawn from {len(demonstrations.items)}; ask for smaller sets, or "
            "give more demonstrations"
        )
    if len(demonstrations.items) == size:
        return (demonstrations,) * sets
    return tuple(_drawn(demonstrations, f"{seed}\0{number}", size) for number in range(1, sets + 1))


def listed_set(demonstrations: Demonstrations, lists: str, number: int) -> Demonstrations:
    """Select a listed set: the demonstrations of its ids, in the order of the list; number: from 1.

    lists: a JSON file of lists of ids, or `released` for the authors' sets of the demonstrations' dataset.
    Raises DemonstrationError where the set or one of its demonstrations doesn't exist.
    """
    by_id = {each.id: each for each in demonstrations.items}
    sets = _released(frozenset(by_id)) if lists == RELEASED else read_sets(Path(lists))
    if number > len(sets):
        raise DemonstrationError(f"there is no set {number} in {lists}, which has {len(sets)}")
    ids = sets[number - 1]
    for id_ in ids:
        if id_ not in by_id:
            raise DemonstrationError(f"set {number} of {lists} has the id {id_!r}, and no demonstration has it")
    return Demonstrations(items=tuple(by_id[id_] for id_ in ids))


def read_sets(path: Path) -> Lists:
    """Read the lists of ids of a JSON file, `[["id", ...], ...]`; DemonstrationError says what is wrong with it."""
    with opened(path, DemonstrationError) as file:
        content = read_whole(file, str(path), DemonstrationError, MAX_SMALL_FILE_BYTES)
    try:
        sets = msgspec.json.decode(content, type=Lists)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise DemonstrationError(
            f'{path} isn\'t a JSON list of lists of ids, as [["q1", "q2"], ["q3"]]: {problem_of(error, content, Lists)}'
        ) from error
    for number, ids in enumerate(sets, start=1):
        if twice := next((id_ for id_ in ids if ids.count(id_) > 1), None):
            raise DemonstrationError(f"{path}: set {number} has the id {twice!r} twice")
    return sets


def _released(ids: frozenset[str]) -> Lists:
    """The authors' sets of the dataset that contains any of these ids."""
    by_dataset = msgspec.convert(tomllib.loads(FILE.read_text("utf-8")), dict[str, Lists])
    for lists in by_dataset.values():
        if not ids.isdisjoint(chain.from_iterable(lists)):
            return lists
    raise DemonstrationError(
        f"none of these demonstrations is in the released sets, which there are for {', '.join(by_dataset)}"
    )


def _drawn(demonstrations: Demonstrations, salt: str, size: int) -> Demonstrations:
    order = sorted(demonstrations.items, key=lambda each: hashlib.sha256(f"{salt}\0{each.id}".encode()).digest())
    return Demonstrations(items=tuple(order[:size]))
