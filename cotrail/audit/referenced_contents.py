"""Contents that steps refer to by digest, and the actions and prompts that are rebuilt from them."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.audit.findings import Finding
from cotrail.audit.paragraph_spool import ParagraphSpool
from cotrail.audit.records import UNREADABLE, Record, Row, text
from cotrail.audit.sealed_columns import STEP_SELDOM
from cotrail.core.actions.generate import Prompted, seen_prompt
from cotrail.core.actions.kind import digests_in
from cotrail.core.actions.registry import KINDS
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.edits import StepEdit, edited, read_edit
from cotrail.core.prompts import Prompt
from cotrail.core.results import Generated
from cotrail.core.stored_parts import Stored
from cotrail.core.system import Action
from cotrail.errors import InputError

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
        return read_edit(_json(step.get(STEP_SELDOM)))
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
