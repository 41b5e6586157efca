"""The contents that a run's steps refer to by digest, and the actions and prompts that are made of them again."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.audit.findings import Finding
from cotrail.audit.paragraph_spool import ParagraphSpool
from cotrail.audit.records import Record, Row, text
from cotrail.core.actions.kind import Action
from cotrail.core.actions.read import Read
from cotrail.core.actions.reason import Reason
from cotrail.core.encoding import action_of, digests_in
from cotrail.core.prompts import Demonstrations, Prompt
from cotrail.core.results import Generated

UNREADABLE = (
    msgspec.MsgspecError,
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What reading JSON raises that isn't as it was written."""

REFERRED = 64 * 2**20
"""How many bytes of paragraphs one step may refer to: no prompt is nearly as long."""


class References(Struct, frozen=True):
    """What a row refers to, by digest."""

    paragraphs: tuple[str, ...] = ()
    demonstrations: tuple[str, ...] = ()


class ReferencedContents:
    """Paragraphs and demonstrations by digest, as they come."""

    def __init__(self) -> None:
        self._paragraphs = ParagraphSpool()
        self._demonstrations: dict[str, Demonstrations] = {}
        self._broken: set[str] = set()
        self._missed: set[str] = set()
        self._unused: dict[str, str] = {}

    def take(self, record: Record) -> Iterator[Finding]:
        """Keeps a row of `paragraphs` or `demonstrations`."""
        digest = text(record.row, "digest")
        if digest in self._paragraphs or digest in self._demonstrations:
            yield Finding(table=record.table, what="added", digest=digest, detail="it is there twice")
            return
        self._unused[digest] = record.table
        found = self._paragraph(record.row) if record.table == "paragraphs" else self._shots(record.row)
        if found != digest:
            self._broken.add(digest)
            yield Finding(table=record.table, what="changed", digest=digest, detail="its content has another digest")

    def use(self, references: References) -> None:
        """Something refers to these, which need not be there: a system may collect what no step was given."""
        for digest in (*references.paragraphs, *references.demonstrations):
            self._unused.pop(digest, None)

    def missing(self, references: References) -> Iterator[Finding]:
        """What a row refers to and isn't there; each is named once."""
        self.use(references)
        for table, digests, known in (
            ("paragraphs", references.paragraphs, self._paragraphs),
            ("demonstrations", references.demonstrations, self._demonstrations),
        ):
            for digest in digests:
                if digest not in known and digest not in self._broken and digest not in self._missed:
                    self._missed.add(digest)
                    yield Finding(table=table, what="removed", digest=digest, detail="something refers to it")

    def unused(self) -> Iterator[Finding]:
        """What nothing referred to."""
        for digest, table in self._unused.items():
            yield Finding(table=table, what="added", digest=digest, detail="nothing refers to it")

    def sound(self, references: References) -> bool:
        """Whether all of this is there as it was recorded."""
        digests = {*references.paragraphs, *references.demonstrations}
        return digests.isdisjoint(self._broken) and digests.isdisjoint(self._missed)

    def action(self, step: Row) -> Action:
        """What a step asks for; raises one of UNREADABLE."""
        request = msgspec.json.decode(text(step, "request"))
        if sum(map(self._paragraphs.size, digests_in(request))) > REFERRED:
            raise ValueError("it refers to more text than any prompt holds")
        return action_of(text(step, "kind"), request, self._paragraphs, self._demonstrations.__getitem__)

    def prompt(self, step: Row) -> Prompt | None:
        """A step's prompt as the model saw it; without a result as it was asked for. None where it has none."""
        action = self.action(step)
        if not isinstance(action, Reason | Read):
            return None
        if step["result"] is None:
            return action.prompt
        seen = msgspec.json.decode(step["result"], type=Generated)
        return action.prompt.keep(seen.demonstrations, seen.paragraphs, seen.first_demonstration)

    def _paragraph(self, row: Row) -> str:
        digest = text(row, "digest")
        self._paragraphs.add(digest, text(row, "title"), text(row, "text"))
        return self._paragraphs[digest].digest

    def _shots(self, row: Row) -> str:
        try:
            body = msgspec.json.decode(text(row, "body"))
            shots = msgspec.convert(body, Demonstrations)
            said = shots.digest if _within(body, msgspec.to_builtins(shots)) else ""
        except UNREADABLE:
            return ""
        self._demonstrations[text(row, "digest")] = shots
        return said


def references_of_request(step: Row) -> References:
    """What a step's request refers to; raises one of UNREADABLE."""
    request = msgspec.json.decode(text(step, "request"))
    shots = request.get("demonstrations")
    return References(_digests(request.get("paragraphs", ())), _digests((shots,)))


def references_of_collected(question: Row) -> References:
    """What a question collected."""
    return References(_digests(_json(question["collected"]) or ()))


def references_of_run(run: Row) -> References:
    """The demonstrations that a run was submitted with."""
    return References(demonstrations=_digests((_json(run["demonstrations"]) or {}).values()))


def _digests(given: Iterable[Any]) -> tuple[str, ...]:
    return tuple(digest for digest in given if isinstance(digest, str))


def _within(said: Any, known: Any) -> bool:
    """Whether JSON holds nothing but what is known of it."""
    if isinstance(said, dict):
        return all(name in known and _within(value, known[name]) for name, value in said.items())
    if isinstance(said, list):
        return len(said) == len(known) and all(map(_within, said, known))
    return bool(said == known)


def _json(value: str | None) -> Any:
    return None if value is None else msgspec.json.decode(value)
