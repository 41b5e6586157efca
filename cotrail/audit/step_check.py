"""Check of a step and of the rows that belong to it."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.audit.findings import Change, Finding
from cotrail.audit.question_sequence import RunContext
from cotrail.audit.records import ENDED_STEPS, OPEN_STEPS, STEP, UNREADABLE, Row, StepRows, number, text
from cotrail.audit.referenced_contents import ReferencedContents, References, edit_of, references_of_request
from cotrail.audit.row_digests import changed_column, earlier_attempts, step_digest
from cotrail.core.actions.generate import REASON
from cotrail.core.actions.registry import KINDS, finds_paragraphs, fingerprint
from cotrail.core.edits import given
from cotrail.core.history import GIVEN
from cotrail.core.prompt_records import chain_length
from cotrail.core.results import digest_of_found

# Check of a step's attempts: one per claim, by rising epochs, the last one repeating the step's own columns.


class AttemptCheck:
    """Checks the attempts of a step; key: that of its question."""

    def __init__(self, rows: StepRows, key: str) -> None:
        self._step, self._attempts, self._key = rows.step, rows.attempts, key

    @property
    def ending(self) -> Row | None:
        """The attempt of the last claim."""
        return next((each for each in self._attempts if each["epoch"] == self._step["epoch"]), None)

    def of_open_step(self) -> Iterator[Finding]:
        """Attempts of a step that hasn't ended: none of them ended it, and only the last one may be running."""
        yield from self.epochs()
        running = self._step["state"] == "running"
        for attempt in self._attempts:
            under_way = running and attempt["epoch"] == self._step["epoch"]
            if attempt["outcome"] in ("finished", "cancelled") or under_way != (attempt["outcome"] is None):
                yield self._changed(attempt, "outcome", f"its step is {self._step['state']}")
            elif (attempt["ended_at"] is None) != (attempt["outcome"] is None):
                yield self._changed(attempt, "ended_at", f"its outcome is {attempt['outcome']}")

    def of_ended_step(self) -> Iterator[Finding]:
        """Attempts of an ended step: the last one is there and, if it ended the step, repeats the step's columns."""
        numbered = list(self.epochs())
        yield from numbered
        ending = self.ending
        # A cancelled step may have been cancelled between two attempts: then its last attempt didn't end it.
        if numbered or ending is None or (self._step["state"] == "cancelled" and ending["outcome"] != "cancelled"):
            return
        repeated = {
            "worker": self._step["worker"],
            "started_at": self._step["started_at"],
            "ended_at": self._step["finished_at"],
            "outcome": self._step["state"],
            "error": None,
        }
        for name, value in repeated.items():
            if ending[name] != value:
                yield self.contradicted(ending, name, value)

    def epochs(self) -> Iterator[Finding]:
        """Epochs that were used twice or lie in the future, and a missing attempt that the step itself tells of."""
        last = 0
        for attempt in self._attempts:
            epoch = number(attempt, "epoch")
            if not last < epoch <= number(self._step, "epoch"):
                yield self._found("added", f"the step was claimed {self._step['epoch']} times", epoch)
            last = epoch
        if self.ending is None and not self._given_back():
            detail = f"the step was claimed at {self._step['started_at']}"
            yield self._found("removed", detail, number(self._step, "epoch"))

    def contradicted(self, attempt: Row, column: str, value: str | None) -> Finding:
        """The finding that an attempt's column differs from what its step says."""
        return self._changed(attempt, column, f"its step says {value!r}")

    def _given_back(self) -> bool:
        """Return whether the last claim was deferred: the step is as the attempt before it, or none, left it.

        A claim that is deferred leaves no attempt, since nothing was done for it; only the epoch tells of it.
        """
        if self._step["state"] in ("finished", "failed"):
            return False
        latest = self._attempts[-1] if self._attempts else {}
        return all(latest.get(name) == self._step[name] for name in ("worker", "started_at"))

    def _changed(self, attempt: Row, column: str, detail: str) -> Finding:
        return self._found("changed", detail, number(attempt, "epoch"), column)

    def _found(self, change: Change, detail: str, epoch: int, column: str | None = None) -> Finding:
        return Finding(
            table="attempts",
            what=change,
            detail=detail,
            question=self._key,
            step=number(self._step, "sequence"),
            epoch=epoch,
            column=column,
        )


_OF_THE_END = ("digest", *STEP[STEP.index("finished_at") : STEP.index("edit")], "adopted_from")
"""Columns that only a step that has ended fills."""

_OF_A_CLAIM = ("worker", "started_at", "lease_until")
"""Columns that only a claimed step fills."""

MOST_NAMED_RANKS = 100
"""Maximum number of missing ranks of a search that are named."""


class StepContext(Struct, frozen=True, kw_only=True):
    """The question's and the run's data that a step is checked against.

    question, key: the question's id and key.
    heads: all heads that the question has had, the first one before its first step.
    contents: the contents that steps refer to.
    """

    question: str
    key: str
    run: RunContext
    heads: Sequence[str]
    contents: ReferencedContents


def check_step(rows: StepRows, around: StepContext) -> list[Finding]:
    """Check a step; the rows that belong to it are checked only if its own row is sound, as they are judged by it."""
    findings = list(_StepCheck(rows, around).own())
    return findings or list(_StepCheck(rows, around).belongings())


class _StepCheck:
    def __init__(self, rows: StepRows, around: StepContext) -> None:
        self.rows, self.step, self.around = rows, rows.step, around
        self.sequence = number(rows.step, "sequence")
        self.attempts = AttemptCheck(rows, around.key)

    def own(self) -> Iterator[Finding]:
        """Check the row itself and the attempts that its digest covers."""
        if self.step["state"] not in ENDED_STEPS:
            yield from self._open()
        elif self.step["digest"] is None:
            yield self._found("steps", "changed", f"it is {self.step['state']} and has no digest", column="digest")
        elif self._digest(self.step) != self.step["digest"]:
            yield self._unsealed()
        else:
            yield from self.attempts.of_ended_step()
        if self.around.run.id and self.step["run_id"] != self.around.run.id:
            yield self._found("steps", "changed", f"its run is {self.step['run_id']}", column="run_id")

    def belongings(self) -> Iterator[Finding]:
        """Check the contents that its request and result refer to, and the rows that were written with its result."""
        try:
            request = msgspec.json.decode(text(self.step, "request"))
            result = msgspec.json.decode(self.step["result"] or "null")
            referred = references_of_request(self.step)
            yield from self._sets(request, result)
            yield from self._sentences(request, result)
            yield from self.around.contents.missing(referred)
            if self.around.contents.sound(referred):
                yield from self._request(result)
                yield from self._edited(result)
        except UNREADABLE as error:
            yield self._found("steps", "changed", f"its request or result can't be read ({error})")

    def _digest(self, step: Row) -> str:
        return step_digest(step, earlier_attempts(step, self.rows.attempts))

    def _open(self) -> Iterator[Finding]:
        """Check that a step that hasn't ended has no columns of an end, and an unclaimed one none of a claim."""
        state, epoch = self.step["state"], number(self.step, "epoch")
        if state not in OPEN_STEPS:
            yield self._found("steps", "changed", f"no step is {state}", column="state")
            return
        names = _OF_THE_END if epoch else (*_OF_THE_END, *_OF_A_CLAIM)
        held = next((name for name in names if self.step[name] is not None), None)
        if held is not None:
            column = "state" if self.step["digest"] is not None else held
            yield self._found("steps", "changed", f"it is {state} and has {held.replace('_', ' ')}", column=column)
            return
        yield from self.attempts.of_open_step()

    def _unsealed(self) -> Finding:
        """The finding for a digest that doesn't match: the changed row, as far as it can be determined."""
        recorded = text(self.step, "digest")
        changed = changed_column(self.step, recorded, self._digest, self._values(), self.around.run.guesses)
        if changed is not None and changed[0] == "sequence":
            return self._found("steps", "reordered", f"it was step {changed[1]}", column="sequence")
        if changed is not None:
            return self._found("steps", "changed", f"it held {changed[1]!r}", column=changed[0])
        ending, last = self.attempts.ending, number(self.step, "epoch")
        before = [each for each in self.rows.attempts if number(each, "epoch") < last]
        if ending is not None and step_digest(self.step, before) == recorded:
            return self.attempts.contradicted(ending, "outcome", self.step["state"])
        added = next((finding for finding in self.attempts.epochs() if finding.what == "added"), None)
        if added is not None:
            return added
        # Of a step that was cancelled the last attempt may have ended before, and is covered then.
        covered = last > 1 or self.step["state"] == "cancelled"
        detail = "its digest is another one" + (", which covers its earlier attempts too" if covered else "")
        perhaps = ("attempts",) if covered else ()
        return self._found("steps", "changed", detail, perhaps=perhaps)

    def _values(self) -> dict[str, Iterable[str | None]]:
        """Candidate values that the columns may have had, from other rows."""
        ending = self.rows.attempts[-1] if self.rows.attempts else {}
        result = _object(self.step["result"])
        counts = {name: result.get(name) for name in _TOKENS}
        tokens = {name: (None, None if count is None else str(count)) for name, count in counts.items()}
        rows = self.rows
        belonging = chain(rows.prompts, rows.attempts, rows.paragraph_sets, rows.sentences)
        return {
            "sequence": map(str, range(len(self.around.heads))),
            "id": {row["step_id"] for row in belonging},
            "run_id": (self.around.run.id,),
            "question_id": (self.around.question,),
            "shared_in": (self.around.run.shared_in,),
            "previous": self.around.heads,
            "kind": KINDS,
            "fingerprint": self._fingerprint(),
            "state": ENDED_STEPS,
            "epoch": (ending["epoch"],) if ending else (),
            "worker": (ending.get("worker"), None),
            "started_at": (ending.get("started_at"), None),
            "finished_at": (ending.get("ended_at"),),
            **dict.fromkeys(("lease_until", "not_before", "adopted_from", "failure", "edit"), (None,)),
            **tokens,
        }

    def _fingerprint(self) -> tuple[str, ...]:
        """The fingerprint of its request under the run's configuration; none where it can't be computed.

        A step that a fork took over as given keeps the fingerprint of its origin, under another configuration.
        """
        if self.around.run.binding is None or self.step["worker"] == GIVEN:
            return ()
        try:
            return (fingerprint(self.around.contents.action(self.step), self.around.run.binding),)
        except UNREADABLE:
            return ()

    def _sets(self, request: Any, result: Any) -> Iterator[Finding]:
        """Check a search's hits: every rank once, the step's query, the digest that the result holds."""
        table, rows = "paragraph_sets", self.rows.paragraph_sets
        hits = result["hits"] if finds_paragraphs(self.step["kind"]) and result is not None else 0
        ranks, there = [number(row, "rank") for row in rows], set[int]()
        for rank in ranks:
            if rank > hits or rank < 1 or rank in there:
                yield self._found(table, "added", f"the step found {hits}", rank=rank)
            there.add(rank)
        missing = list(islice((rank for rank in range(1, hits + 1) if rank not in there), MOST_NAMED_RANKS))
        for rank in missing:
            yield self._found(table, "removed", f"the step found {hits}", rank=rank)
        if missing or len(ranks) != hits:
            return
        edit = edit_of(self.step)
        for row in rows:
            query = (edit and edit.query) or request.get(KINDS[text(self.step, "kind")].query)
            searched = {"question_id": self.around.question, "query": query}
            yield from self._repeats(table, row, searched, rank=number(row, "rank"))
        if hits and _digest_of_sets(rows) != result["digest"]:
            yield self._found(table, "changed", "one of rank, digest, paragraph_id and score isn't what was found")
        elif rows:
            yield from self.around.contents.missing(References(tuple(text(row, "digest") for row in rows)))

    def _sentences(self, request: Any, result: Any) -> Iterator[Finding]:
        table, rows = "sentences", self.rows.sentences
        wrote = self.step["kind"] == REASON.name and result is not None and request["until"] == "sentence"
        due = int(wrote and result["text"] != "")
        if len(rows) < due:
            yield self._found(table, "removed", "the step wrote one")
        for _ in rows[due:]:
            yield self._found(table, "added", f"the step wrote {due}")
        if due and len(rows) == due:
            position = str(chain_length(request))
            sentence = {"question_id": self.around.question, "position": position, "text": result["text"]}
            yield from self._repeats(table, rows[0], sentence)

    def _request(self, result: Any) -> Iterator[Finding]:
        if self._fingerprint() not in ((), (self.step["fingerprint"],)):
            detail = "it isn't that of its request under the run's configuration"
            yield self._found("steps", "changed", detail, column="fingerprint")
        prompt = self.around.contents.prompt(self.step)
        if prompt is None:
            yield from self._bundled(None)
            return
        if result is not None and prompt.digest != result["prompt_digest"]:
            yield self._found("steps", "changed", "its prompt, built again, isn't what the model saw", column="result")
            return
        yield from self._bundled(prompt.digest)

    def _edited(self, result: Any) -> Iterator[Finding]:
        text_given = given(self.around.contents.carried_out(self.step), edit_of(self.step))
        written = None if text_given is None else msgspec.json.decode(msgspec.json.encode(text_given.recorded()))
        if written is not None and result not in (None, written):
            yield self._found("steps", "changed", "its result isn't the text that it was given", column="result")

    def _bundled(self, digest: str | None) -> Iterator[Finding]:
        rows = self.rows.prompts
        due = int(self.around.run.bundled and digest is not None)
        if len(rows) < due:
            yield self._found("prompts", "removed", "every reason and read step has one")
        for _ in rows[due:]:
            yield self._found("prompts", "added", f"the step has {due}")
        if due and rows and hashlib.sha256(text(rows[0], "text").encode()).hexdigest() != digest:
            yield self._found("prompts", "changed", f"its SHA-256 isn't {digest}", column="text")

    def _repeats(self, table: str, row: Row, values: dict[str, str], rank: int | None = None) -> Iterator[Finding]:
        for name, value in values.items():
            if row[name] != value:
                yield self._found(table, "changed", f"its step says {value!r}", column=name, rank=rank)

    def _found(self, table: str, what: Any, detail: str, **more: Any) -> Finding:
        return Finding(table=table, what=what, detail=detail, question=self.around.key, step=self.sequence, **more)


_TOKENS = ("prompt_tokens", "cached_prompt_tokens", "generated_tokens")


def _digest_of_sets(rows: Iterable[Row]) -> str:
    """The digest of stored hits, as `Retrieved.digest` computes it when they are found."""
    ranked = sorted(rows, key=lambda row: number(row, "rank"))
    return digest_of_found(
        (number(row, "rank"), text(row, "digest"), text(row, "paragraph_id"), float(text(row, "score")))
        for row in ranked
    )


def _object(value: str | None) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(value or "{}")
    except UNREADABLE:
        return {}
    return decoded if isinstance(decoded, dict) else {}
