"""Ledger of a worker process: what it writes as it claims steps and records how they end.

Claims and results come in micro-batches, each call one transaction, so that what arrives together is written together.
The statements are in `cotrail.models.execution.statements`.

Stored requests of steps, which may be damaged or of another version when they are read back.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, RowMapping
from sqlalchemy.exc import DBAPIError, IntegrityError

from cotrail.core.actions.generate import Reason
from cotrail.core.actions.kind import digests_in
from cotrail.core.actions.registry import KINDS, kind_of
from cotrail.core.demonstrations import Stored
from cotrail.core.edits import read_edit
from cotrail.core.questions import Paragraph
from cotrail.core.results import MOST_CHARACTERS, Failure, Generated, Retrieved, failure_of
from cotrail.errors import BlockedError, UnreadableError, UnrecordableError
from cotrail.models.execution import statements
from cotrail.models.execution.adoption import find_twins, take_waiting
from cotrail.models.execution.leases import Adopted, Claim, ClaimKey, Completion, Leases, clear_batched, next_in_turn
from cotrail.models.records.advancing import ReplayCache, advance_questions, block_questions, unrecordable
from cotrail.models.records.budgets import EndedStep, add_consumed
from cotrail.models.records.contents import ParagraphCache, save_paragraphs
from cotrail.models.records.questions import lock_questions
from cotrail.models.records.runs import Bring, FindSystem, Runs
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.base import Rows
from cotrail.models.schema.database import reason_of, refused, unanswered
from cotrail.models.schema.deployment import check_version
from cotrail.models.schema.states import StepState

LONGEST_REASON = 200
"""The largest number of characters shown of why a step can't be read."""


def decoded(request: str) -> Any:
    """Return a stored action as JSON; None where it isn't readable JSON."""
    try:
        return msgspec.json.decode(request)
    except (msgspec.DecodeError, RecursionError):
        return None


def unreadable(request: Any, paragraphs: Mapping[str, Paragraph], error: Exception) -> UnreadableError:
    """Return an error that tells why a step can't be read."""
    if isinstance(error, UnreadableError):
        return error
    missing = [digest for digest in digests_in(request) if digest not in paragraphs]
    if isinstance(error, KeyError) and missing:
        return UnreadableError(f"the paragraph {missing[0]:.64} isn't in the store; restore it from a backup")
    return UnreadableError(
        f"what is recorded of the step can't be read ({type(error).__name__}: {error!s:.{LONGEST_REASON}}): it is "
        "damaged, or of a newer version, whose workers have to execute it"
    )


logger = logging.getLogger(__name__)

MOST_WRITTEN = 4 * MOST_CHARACTERS
"""The largest number of characters of results in one transaction: PostgreSQL takes a few hundred megabytes at once."""


class Ledger(Leases):
    """The store as one worker process writes it: claims, results, and the leases between the two.

    find_system: the systems that this process has; bring: see `Runs`.
    """

    def __init__(
        self, engine: Engine, worker: str, lease_seconds: float, find_system: FindSystem, bring: Bring | None = None
    ) -> None:
        super().__init__(engine, worker, lease_seconds)
        self.runs = Runs(find_system, bring)
        self._paragraphs = ParagraphCache()
        self._replays = ReplayCache(self._paragraphs)

    def claim(self, messages: Sequence[Dispatch]) -> list[Claim | None]:
        """Claim steps for this worker.

        None stands for a step that can't be claimed: another worker has it, it has ended, the message is stale, its run
        is paused or cancelled, its twin is being computed (`cotrail.models.execution.adoption`), or it can't be read,
        which blocks its question. Raises OutdatedError where the database belongs to another version of cotrail.
        """
        wanted = [{"id": message.step_id, "epoch": message.epoch, "kind": message.kind} for message in messages]
        with self.engine.begin() as connection:
            parameters = {"rows": wanted, "worker": self.worker, "lease_seconds": self.lease_seconds}
            taken = connection.execute(statements.CLAIM, parameters).mappings().all()
            if len(taken) < len(wanted):
                # `CLAIM` finds nothing in a database of another version. That is asked for only where something is
                # missing.
                check_version(connection)
            twins = find_twins(connection, taken, self.worker, self._paragraphs)
            kept = [row for row in taken if row["id"] not in twins.awaited]
            claims, damaged = self._read(connection, kept, twins.adopted)
        # Behind the transaction: blocking names the epoch of the claim, which has to be committed by then.
        for held, error in damaged:
            logger.warning("step %d blocks its question: %s", held.step_id, error)
            self.block(held, error)
        return [claims.pop(message.step_id, None) for message in messages]

    def next_in_turn(self, kind: str, own: Sequence[int], latest: Sequence[str], room: int) -> list[Dispatch]:
        """Return the steps to claim next where models compute (`cotrail.models.execution.leases`)."""
        with self.engine.begin() as connection:
            return next_in_turn(connection, kind, own, latest, room)

    def commit(self, completions: Sequence[Completion]) -> list[list[Dispatch]]:
        """Record how steps ended and what follows; returns for each the messages to be sent now.

        A completion whose claim was lost meanwhile changes nothing: another worker's result counts. Among the messages
        are those of steps that waited for these to end. What is too much for one transaction is written in several.
        """
        return [messages for group in _portions(completions) for messages in self._commit_portion(group)]

    def record(self, completion: Completion) -> list[Dispatch]:
        """Record how one step ended, whatever that is; returns the messages to be sent now.

        Where what follows can't be recorded, the result is, and the question is blocked. A result that the database
        can't hold is recorded as the step's failure, and where it takes neither the question is blocked. Raises only
        the errors that `unanswered` names.
        """
        try:
            return self.commit([completion])[0]
        except BaseException as error:
            if unanswered(error):
                raise
            return self._record_alone(completion, error)

    def _record_alone(self, completion: Completion, error: BaseException) -> list[Dispatch]:
        """Record the result and not what follows: whatever is wrong with that must not cost the result."""
        blocked = unrecordable(error)
        try:
            [messages] = self._commit_portion([completion], blocked)
        except BaseException as again:
            if unanswered(again):
                raise
            return self._record_failure(completion, again)
        logger.error("behind step %d its question is blocked: %s", completion.claim.step_id, blocked, exc_info=error)
        return messages

    def _record_failure(self, completion: Completion, error: BaseException) -> list[Dispatch]:
        step_id, reason = completion.claim.step_id, reason_of(error)
        if refused(error) and not isinstance(completion.outcome, Failure):
            logger.warning("step %d failed: the database takes no such result (%s)", step_id, reason)
            failure = failure_of(UnrecordableError(f"the database takes no such result: {reason}"))
            return self.record(replace(completion, outcome=failure))
        logger.error("step %d can't be recorded, its question is blocked (%s)", step_id, reason, exc_info=error)
        self.block(completion.claim, BlockedError(f"how step {step_id} ended can't be recorded: {reason}"))
        return []

    def _commit_portion(
        self, completions: Sequence[Completion], blocked: BlockedError | None = None
    ) -> list[list[Dispatch]]:
        try:
            return self._commit(completions, self._paragraphs.known, blocked)
        except IntegrityError:
            # A paragraph that this process has cached was pruned, and a foreign key misses it: store all of them again.
            return self._commit(completions, {}, blocked)

    def _commit(
        self, completions: Sequence[Completion], stored: Mapping[str, Paragraph], blocked: BlockedError | None
    ) -> list[list[Dispatch]]:
        """Record how steps ended, and what follows unless that is blocked."""
        with self.engine.begin() as connection:
            # Questions before steps, as in every transaction that locks both, so that these never deadlock. And of two
            # commits for steps that were yielded together, the second sees the first's result and records what follows.
            locked = lock_questions(connection, (done.claim.question_id for done in completions))
            counting, waiting_questions = self._finish(connection, completions)
            self._save_paragraph_sets(connection, counting, stored)
            self._save_sentences(connection, counting)
            # Steps may have been deferred until one ends, but not where it adopts: there was a result already.
            computed = (done.claim for done in counting if done.claim.adopted is None)
            waiting = take_waiting(connection, [claim.step_id for claim in computed if claim.run.shared_in is not None])
            touched = {done.claim.question_id for done in counting} - waiting_questions
            rows = [row for row in locked if row["id"] in touched]
            # What was adopted has been paid for by the run that computed it.
            add_consumed(connection, map(_ended, (done for done in counting if done.claim.adopted is None)))
            following: dict[int, list[Dispatch]] = {}
            if blocked is None:
                following = advance_questions(connection, self.runs, rows, cache=self._replays)
            else:
                block_questions(connection, [row["id"] for row in rows], blocked)
            if batched := [done.claim.step_id for done in counting if done.claim.run.batched]:
                clear_batched(connection, batched)
        # Taken out: of several completions of one question only the first has its messages, which are sent once.
        return [following.pop(done.claim.question_id, []) + waiting.pop(done.claim.step_id, []) for done in completions]

    def give_up(self, step_ids: Sequence[int], failure: Failure) -> list[list[Dispatch]]:
        """Record steps as failed that no worker holds; their systems see the failure like any other."""
        with self.engine.begin() as connection:
            rows = connection.execute(statements.UNHELD, {"ids": step_ids}).mappings().all()
            claims, damaged = self._read(connection, rows)
        for key, error in damaged:
            self.block(key, error)
        completions = [Completion(claim=claim, outcome=failure, milliseconds=0) for claim in claims.values()]
        return [self.record(completion) for completion in completions]

    def _read(
        self, connection: Connection, rows: Sequence[RowMapping], adopted: Mapping[int, Adopted] = MappingProxyType({})
    ) -> tuple[dict[int, Claim], list[tuple[ClaimKey, UnreadableError]]]:
        """Return claims of these rows by the step's id; and those that can't be read, with the reason."""
        requests = {row["id"]: decoded(row["request"]) for row in rows}
        referred = (digest for request in requests.values() for digest in digests_in(request))
        paragraphs_read = self._paragraphs.read(connection, referred)
        claims: dict[int, Claim] = {}
        damaged: list[tuple[ClaimKey, UnreadableError]] = []
        for row in rows:
            request = requests[row["id"]]
            try:
                claims[row["id"]] = self._claim(connection, row, request, paragraphs_read, adopted.get(row["id"]))
            except DBAPIError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one step must not fail the others
                key = ClaimKey(step_id=row["id"], epoch=row["epoch"], question_id=row["question_id"])
                damaged.append((key, unreadable(request, paragraphs_read, error)))
        return claims, damaged

    def _claim(
        self,
        connection: Connection,
        row: RowMapping,
        request: Any,
        paragraphs: Mapping[str, Paragraph],
        adopted: Adopted | None,
    ) -> Claim:
        stored = Stored(paragraphs, lambda digest: self.runs.demonstrations(connection, digest))
        return Claim(
            step_id=row["id"],
            epoch=row["epoch"],
            question_id=row["question_id"],
            action=KINDS[row["kind"]].read(request, stored),
            run=self.runs.plan(connection, row["run_id"]),
            edit=read_edit(row["edit"]),
            adopted=adopted,
        )

    def _finish(self, connection: Connection, completions: Sequence[Completion]) -> tuple[list[Completion], set[int]]:
        """Mark steps as finished or failed.

        Returns the completions that count, and the questions with further steps under way, which were yielded together
        with these: nothing follows yet.
        """
        rows = [_completed(done) for done in completions]
        finished = connection.execute(statements.FINISH, {"rows": rows}).all()
        ids = {row.id for row in finished}
        ended = Counter(row.question_id for row in finished)
        # `open` still counts the steps that this statement ended.
        waiting = {row.question_id for row in finished if row.open > ended[row.question_id]}
        return [done for done in completions if done.claim.step_id in ids], waiting

    def _save_paragraph_sets(
        self, connection: Connection, completions: Sequence[Completion], stored: Mapping[str, Paragraph]
    ) -> None:
        hits = [
            (done.claim, str(getattr(action, kind_of(action).query or "")), hit)
            for done in completions
            if isinstance(done.outcome, Retrieved)
            for action in (done.claim.carried_out,)
            for hit in done.outcome.hits
        ]
        if not hits:
            return
        new = {hit.paragraph.digest: hit.paragraph for _, _, hit in hits if hit.paragraph.digest not in stored}
        save_paragraphs(connection, new)
        # Though the transaction may still be rolled back: a foreign key would miss them then, and `_commit_portion`
        # stores them.
        self._paragraphs.add(new)
        sets: Rows = [
            {
                "step_id": claim.step_id,
                "rank": hit.rank,
                "question_id": claim.question_id,
                "query": query,
                "digest": hit.paragraph.digest,
                "paragraph_id": hit.paragraph.id,
                "score": hit.score,
            }
            for claim, query, hit in hits
        ]
        connection.execute(statements.NEW_SETS, {"rows": sets})

    def _save_sentences(self, connection: Connection, completions: Sequence[Completion]) -> None:
        """Store the sentences of chains of thought; a Reason step that wrote a line (titles) or nothing has none."""
        rows: Rows = [
            {
                "step_id": done.claim.step_id,
                "question_id": done.claim.question_id,
                "position": len(done.claim.action.prompt.written),
                "text": done.outcome.text,
            }
            for done in completions
            if isinstance(done.outcome, Generated)
            and done.outcome.text
            and isinstance(done.claim.action, Reason)
            and done.claim.action.continues_chain
        ]
        if rows:
            connection.execute(statements.NEW_SENTENCES, {"rows": rows})


def _ended(done: Completion) -> EndedStep:
    claim = done.claim
    return EndedStep(run=claim.run, action=claim.action, outcome=done.outcome, milliseconds=done.milliseconds)


def _portions(completions: Sequence[Completion]) -> Iterator[list[Completion]]:
    """Split completions, in their order, into parts whose text fits into one transaction."""
    portion: list[Completion] = []
    held = 0
    for done in completions:
        size = done.outcome.characters
        if portion and held + size > MOST_WRITTEN:
            yield portion
            portion, held = [], 0
        portion.append(done)
        held += size
    if portion:
        yield portion


def _completed(done: Completion) -> dict[str, object]:
    row: dict[str, object] = {
        "id": done.claim.step_id,
        "epoch": done.claim.epoch,
        "milliseconds": done.milliseconds,
        "adopted_from": done.claim.adopted.step_id if done.claim.adopted else None,
    }
    if isinstance(done.outcome, Failure):
        return {**row, "state": StepState.FAILED, "failure": done.outcome}
    return {**row, "state": StepState.FINISHED, "result": done.outcome.recorded(), **done.outcome.token_counts}
