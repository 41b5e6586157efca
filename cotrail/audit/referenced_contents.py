"""Contents that steps refer to by digest, and the actions and prompts that are rebuilt from them.

Paragraphs spooled to disk: a run may refer to millions of them, and a forged bundle to any amount.
"""

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from tempfile import SpooledTemporaryFile
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.audit.findings import Finding
from cotrail.audit.records import UNREADABLE, Record, Row, text
from cotrail.core.actions.generate import Prompted, seen_prompt
from cotrail.core.actions.kind import digests_in
from cotrail.core.actions.registry import KINDS
from cotrail.core.demonstrations import Demonstrations, Stored
from cotrail.core.edits import StepEdit, edited, read_edit
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Paragraph
from cotrail.core.results import Generated
from cotrail.core.system import Action
from cotrail.errors import InputError

IN_MEMORY = 64 * 2**20
"""Bytes kept in memory before all go to a temporary file, which disappears with the process."""


class ParagraphSpool(Mapping[str, Paragraph]):
    """Paragraphs by the digest under which they were added."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed when this is no longer used
        weakref.finalize(self, self._file.close)
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0

    def add(self, digest: str, title: str, text: str) -> None:
        """Add a paragraph; nothing checks that the digest is its own, which is for the caller to verify."""
        content = msgspec.msgpack.encode((title, text))
        self._file.seek(self._end)
        self._file.write(content)
        self._places[digest] = self._end, len(content)
        self._end += len(content)

    def size(self, digest: str) -> int:
        """Size of a paragraph in bytes; KeyError where it isn't there."""
        return self._places[digest][1]

    def __getitem__(self, digest: str) -> Paragraph:
        place, size = self._places[digest]
        self._file.seek(place)
        title, text = msgspec.msgpack.decode(self._file.read(size), type=tuple[str, str])
        return Paragraph(id=digest, title=title, text=text)

    def __contains__(self, digest: object) -> bool:
        return digest in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


MOST_REFERRED_BYTES = 64 * 2**20
"""Maximum bytes of paragraphs that one step may refer to; no prompt is nearly as long."""


class References(Struct, frozen=True):
    """The digests that a row refers to."""

    paragraphs: tuple[str, ...] = ()
    demonstrations: tuple[str, ...] = ()


class ReferencedContents:
    """Paragraphs and demonstrations by digest, in the order of the records."""

    def __init__(self) -> None:
        self._paragraphs = ParagraphSpool()
        self._demonstrations: dict[str, Demonstrations] = {}
        self._broken: set[str] = set()
        self._missed: set[str] = set()
        self._unused: dict[str, str] = {}

    def take(self, record: Record) -> Iterator[Finding]:
        """Add a row of `paragraphs` or `demonstrations`, and check that its digest is its content's."""
        digest = text(record.row, "digest")
        if digest in self._paragraphs or digest in self._demonstrations:
            yield Finding(table=record.table, what="added", digest=digest, detail="it is there twice")
            return
        self._unused[digest] = record.table
        content_digest = self._paragraph(record.row) if record.table == "paragraphs" else self._shots(record.row)
        if content_digest != digest:
            self._broken.add(digest)
            yield Finding(table=record.table, what="changed", digest=digest, detail="its content has another digest")

    def use(self, references: References) -> None:
        """Note that these are referred to, without requiring them: a system may collect what no step was given."""
        for digest in (*references.paragraphs, *references.demonstrations):
            self._unused.pop(digest, None)

    def missing(self, references: References) -> Iterator[Finding]:
        """Find the contents that a row refers to and that are missing; each is reported once."""
        self.use(references)
        for table, digests, present in (
            ("paragraphs", references.paragraphs, self._paragraphs),
            ("demonstrations", references.demonstrations, self._demonstrations),
        ):
            for digest in digests:
                if digest not in present and digest not in self._broken and digest not in self._missed:
                    self._missed.add(digest)
                    yield Finding(table=table, what="removed", digest=digest, detail="something refers to it")

    def unused(self) -> Iterator[Finding]:
        """Find the contents that nothing referred to."""
        for digest, table in self._unused.items():
            yield Finding(table=table, what="added", digest=digest, detail="nothing refers to it")

    def sound(self, references: References) -> bool:
        """Return whether all of these are there and have the right digests."""
        digests = {*references.paragraphs, *references.demonstrations}
        return digests.isdisjoint(self._broken) and digests.isdisjoint(self._missed)

    def action(self, step: Row) -> Action:
        """Rebuild the action of a step; raises one of UNREADABLE."""
        request = msgspec.json.decode(text(step, "request"))
        if sum(map(self._paragraphs.size, digests_in(request))) > MOST_REFERRED_BYTES:
            raise ValueError("it refers to more text than any prompt holds")
        action: Action = KINDS[text(step, "kind")].read(
            request, Stored(self._paragraphs, self._demonstrations.__getitem__)
        )
        return action

    def carried_out(self, step: Row) -> Action:
        """Rebuild the action that was carried out, which a person may have edited; raises one of UNREADABLE."""
        try:
            return edited(self.action(step), edit_of(step))
        except InputError as error:
            raise ValueError(f"its edit can't be applied: {error}") from error

    def prompt(self, step: Row) -> Prompt | None:
        """Rebuild a step's prompt: packed as the model saw it, or complete if there is no result; None without one.

        Where a person edited it, it is the edited one. Raises one of UNREADABLE.
        """
        action = self.carried_out(step)
        if not isinstance(action, Prompted):
            return None
        if step["result"] is None:
            return action.prompt
        seen = msgspec.json.decode(step["result"], type=Generated)
        return seen_prompt(action, seen)

    def _paragraph(self, row: Row) -> str:
        digest = text(row, "digest")
        self._paragraphs.add(digest, text(row, "title"), text(row, "text"))
        return self._paragraphs[digest].digest

    def _shots(self, row: Row) -> str:
        try:
            body = msgspec.json.decode(text(row, "body"))
            shots = msgspec.convert(body, Demonstrations)
            shots_digest = shots.digest if _within(body, msgspec.to_builtins(shots)) else ""
        except UNREADABLE:
            return ""
        self._demonstrations[text(row, "digest")] = shots
        return shots_digest


def edit_of(step: Row) -> StepEdit | None:
    """How a person edited a step; None where nobody did. Raises one of UNREADABLE."""
    try:
        return read_edit(_json(step["edit"]))
    except InputError as error:
        raise ValueError(str(error)) from error


def references_of_request(step: Row) -> References:
    """References of a step's request; raises one of UNREADABLE."""
    request = msgspec.json.decode(text(step, "request"))
    shots = request.get("demonstrations")
    return References(tuple(digests_in(request)), _digests((shots,)))


def references_of_collected(question: Row) -> References:
    """References to the paragraphs that a question collected."""
    return References(_digests(_json(question["collected"]) or ()))


def references_of_run(run: Row) -> References:
    """References to the demonstrations that a run was submitted with."""
    return References(demonstrations=_digests((_json(run["demonstrations"]) or {}).values()))


def _digests(given: Iterable[Any]) -> tuple[str, ...]:
    return tuple(digest for digest in given if isinstance(digest, str))


def _within(part: Any, whole: Any) -> bool:
    """Return whether decoded JSON holds nothing beyond what its type keeps: extra fields are in no digest."""
    if isinstance(part, dict):
        return all(name in whole and _within(value, whole[name]) for name, value in part.items())
    if isinstance(part, list):
        return len(part) == len(whole) and all(map(_within, part, whole))
    return bool(part == whole)


def _json(value: str | None) -> Any:
    return None if value is None else msgspec.json.decode(value)


# The order in which contents stand in a trail: before the questions that refer to them, by chunks of questions.

CHUNK_QUESTIONS = 20
"""Questions whose contents stand together before the first of them: so few that the transaction isn't idle for long
while they are checked."""

_ENTRY = 160
"""Approximate bytes of memory of a digest in a set."""

Place = tuple[str, str]
"""A content: its table and its digest."""


def readable(references: Callable[[Row], References], row: Row) -> References:
    """What a row refers to; nothing where it can't be read, which the verification reports."""
    try:
        return references(row)
    except UNREADABLE:
        return References()


def groups_of(
    questions: Iterable[Row], steps: Iterable[Row], paragraph_sets: Iterable[Row]
) -> tuple[Sequence[References], ...]:
    """What a chunk's rows refer to, in the groups in which that is written."""
    return (
        [readable(references_of_collected, question) for question in questions],
        [readable(references_of_request, step) for step in steps],
        [References(paragraphs=tuple(text(row, "digest") for row in paragraph_sets))],
    )


def unwritten(group: Sequence[References], written: set[str]) -> Iterator[tuple[str, list[str]]]:
    """The contents of a group that weren't written before, by table and in their order; `written` takes them."""
    for table, digests in (
        ("demonstrations", {digest for each in group for digest in each.demonstrations}),
        ("paragraphs", {digest for each in group for digest in each.paragraphs}),
    ):
        new = sorted(digests - written)
        written.update(new)
        yield table, new


class ContentOrder:
    """Whether the contents of a bundle stand where an export writes them."""

    def __init__(self) -> None:
        self._written: set[str] = set()
        self._standing: list[Place] = []
        self._groups: list[list[References]] = [[], [], [], []]
        self._questions = self._references = 0
        self._misplaced: Place | None = None

    @property
    def held_bytes(self) -> int:
        """Approximate bytes of memory of what the current chunk refers to."""
        return _ENTRY * (self._references + len(self._standing))

    def take(self, record: Record) -> None:
        """Add the next record."""
        row = record.row
        match record.table:
            case "runs":
                self._refer(0, readable(references_of_run, row))
            case "demonstrations" | "paragraphs":
                if self._questions == CHUNK_QUESTIONS:
                    self._close()
                place = record.table, text(row, "digest")
                if self._questions:
                    self._misplaced = self._misplaced or place
                self._standing.append(place)
            case "questions":
                if self._questions == CHUNK_QUESTIONS:
                    self._close()
                self._questions += 1
                self._refer(1, readable(references_of_collected, row))
            case "steps":
                self._refer(2, readable(references_of_request, row))
            case "paragraph_sets":
                self._refer(3, References(paragraphs=(text(row, "digest"),)))

    def end(self) -> Finding | None:
        """The first content that stands elsewhere, if any does."""
        self._close()
        if self._misplaced is None:
            return None
        table, digest = self._misplaced
        detail = "it stands elsewhere than an export writes it"
        return Finding(table=table, what="reordered", digest=digest, detail=detail)

    def _refer(self, group: int, references: References) -> None:
        self._groups[group].append(references)
        self._references += len(references.paragraphs) + len(references.demonstrations)

    def _close(self) -> None:
        """Compare the contents of a chunk, whose questions are complete, with those that an export writes."""
        standing = set(self._standing)
        due = [
            (table, digest)
            for group in self._groups
            for table, digests in unwritten(group, self._written)
            for digest in digests
            if (table, digest) in standing
        ]
        for place, expected in zip(self._standing, due, strict=False):
            if place != expected:
                self._misplaced = self._misplaced or place
        self._standing, self._groups = [], [[], [], [], []]
        self._questions = self._references = 0
