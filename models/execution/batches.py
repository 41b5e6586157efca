"""Batches as the process sees them that sends them: which there are, what goes into the next, what came of each.

A step in the state `batched` has an item with its request. A batch takes the requests that wait (`form`), is sent, and
in the end each answer is stored with its item and the step is ready again (`deliver`): the worker that then claims it
finds the answer. What has no answer waits for the next batch (`give_back`). All of it may be repeated after a crash.
"""

import hashlib
import secrets
from collections.abc import Iterable, Sequence, Set
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, func, insert, null, update

from cotrail.core.ports.batches import BatchAnswer, BatchLine, BatchStatus
from cotrail.models.execution import batch_statements as statements
from cotrail.models.records.budgets import reason_here
from cotrail.models.schema.service_tables import batches
from cotrail.models.schema.states import BatchState

WAVE_SECONDS = 600.0
"""How long a request waits for others at most until a batch is sent without them."""

NO_ANSWER = 408
"""The status of an answer that says that there will be none, which counts as a failed try."""

_NO_ANSWER = f'{{"error": {{"message": "{statements.MOST_RETURNED + 1} batches ended without an answer"}}}}'


class WaitingRequests(Struct, frozen=True, kw_only=True):
    """Requests to a model that wait for a batch.

    seconds: how long the first has waited; more: whether others may come without the answer to any batch.
    """

    lines: int
    bytes: int
    seconds: float
    more: bool


class OpenBatch(Struct, frozen=True, kw_only=True):
    """A batch that hasn't ended.

    provider_id: None where it may not have been sent; asked: whether it was about to be; age: seconds since it was
    recorded; unchecked: seconds since it was about to be sent, or the provider was asked about it; wanted: how many
    steps wait for it.
    """

    key: str
    model_name: str
    lines: int
    provider_id: str | None
    created_at: datetime
    asked: bool
    age: float
    unchecked: float
    wanted: int


def waiting_models(connection: Connection) -> list[str]:
    """Return the models to which requests wait for a batch; those of runs that aren't active don't count."""
    return list(connection.execute(statements.WAITING_MODELS).scalars())


def read_waiting(connection: Connection, model_name: str) -> WaitingRequests | None:
    """Return the requests to a model that wait for a batch, None without any; those of `waiting_models`."""
    row = connection.execute(statements.WAITING, {"model": model_name}).mappings().one_or_none()
    if row is None:
        return None
    return WaitingRequests(**row, more=connection.execute(statements.MORE, {"model": model_name}).scalar_one())


def read_open(connection: Connection) -> list[OpenBatch]:
    """Return the batches that haven't ended, the oldest first."""
    return [OpenBatch(**row) for row in connection.execute(statements.OPEN).mappings()]


def known_ids(connection: Connection) -> frozenset[str]:
    """Return the providers' ids of all recorded batches, whatever their models: these may share an account."""
    return frozenset(connection.execute(statements.KNOWN).scalars())


def full_seconds(connection: Connection, model_name: str) -> float | None:
    """Return how long ago the account had no room for a single request to the model; None where it always had."""
    seconds = connection.execute(statements.FULL, {"model": model_name}).scalar()
    return None if seconds is None else float(seconds)


def smallest_too_large(connection: Connection, model_name: str) -> int | None:
    """Return how many lines the smallest of the model's batches had that was too large lately; None without one."""
    return connection.execute(statements.SMALLEST, {"model": model_name}).scalar()


def form(connection: Connection, model_name: str, sender: str, most_lines: int, most_bytes: int) -> str | None:
    """Record a batch of the requests to a model that wait, as many as fit; returns its key, None where none waits.

    sender: this process. The batch is sent once this is committed: intent before deed.
    """
    ids: list[int] = []
    size = 0
    for step_id, length in connection.execute(statements.TAKE, {"model": model_name, "room": most_lines}):
        size += length
        # One at least: a request that is too large by itself would otherwise wait for ever, and nobody would learn why.
        if ids and size > most_bytes:
            break
        ids.append(step_id)
    if not ids:
        return None
    key = secrets.token_hex(8)
    values = {"key": key, "model_name": model_name, "sender": sender, "lines": len(ids), "digest": ""}
    connection.execute(insert(batches), values)
    connection.execute(statements.ASSIGN, {"batch_key": key, "ids": ids})
    return key


def read_lines(connection: Connection, key: str) -> list[BatchLine]:
    """Return the lines of a batch whose steps still wait for it."""
    rows = connection.execute(statements.LINES, {"batch_key": key})
    return [BatchLine(f"{key}-{row.step_id}", row.body) for row in rows]


def take_over(connection: Connection, key: str, sender: str) -> None:
    """Make this process the one that sends a batch which another one may have been about to send."""
    _update(connection, key, sender=sender)


def about_to_send(connection: Connection, key: str, sender: str, lines: Sequence[BatchLine]) -> bool:
    """Note that a batch is sent right now; returns whether this process still is the one to send it."""
    # Noted before the request leaves: after a crash, a digest says that the provider may have the batch.
    own = statements.OWN.values(checked_at=func.now(), missing_since=None, lines=len(lines), digest=_digest(lines))
    return connection.execute(own, {"batch_key": key, "sending": sender}).rowcount == 1


def sent(connection: Connection, key: str, sender: str, provider_id: str) -> bool:
    """Record that the provider has a batch; returns whether this process still was the one to send it."""
    values = {"provider_id": provider_id, "state": BatchState.SENT, "sent_at": func.now()}
    own = statements.OWN.values(values | {"problem": None, "missing_since": None})
    return connection.execute(own, {"batch_key": key, "sending": sender}).rowcount == 1


def checked(connection: Connection, key: str, status: BatchStatus) -> None:
    """Record how far a batch is."""
    values = {"done": status.done, "expires_at": status.expires_at, "problem": None, "missing_since": None}
    _update(connection, key, checked_at=func.now(), **values)


def troubled(connection: Connection, key: str, problem: str) -> None:
    """Record what is wrong with a batch; the provider is asked again after a while."""
    _update(connection, key, checked_at=func.now(), problem=problem)


def missing(connection: Connection, key: str, problem: str) -> float:
    """Record that a batch, or answers of it, can't be found; returns for how many seconds that has been so."""
    since = func.coalesce(batches.c.missing_since, func.now())
    _update(connection, key, checked_at=func.now(), problem=problem, missing_since=since)
    return float(connection.execute(statements.MISSING_SECONDS, {"batch_key": key}).scalar_one())


def deliver(connection: Connection, key: str, answers: Iterable[BatchAnswer]) -> int:
    """Store answers to lines of a batch and make their steps ready; returns how many: nobody waits for the others."""
    # Of two answers to one line the first counts.
    first: dict[int, BatchAnswer] = {}
    for answer in answers:
        if (step_id := _step_of(answer.id, key)) is not None:
            first.setdefault(step_id, answer)
    if not first:
        return 0
    rows = [{"id": step_id, "answer": msgspec.json.encode(answer).decode()} for step_id, answer in first.items()]
    delivered = int(connection.execute(statements.DELIVER, {"rows": rows, "batch_key": key}).scalar_one())
    connection.execute(statements.COUNT, {"batch_key": key, "more_answered": delivered, "more_unanswered": 0})
    return delivered


def give_back(connection: Connection, key: str, lines: Iterable[str]) -> int:
    """Have lines of a batch that got no answer wait for the next one; returns how many do.

    A line that comes back again and again gets that as its answer, which counts as a failed try of its step.
    """
    return _give_back(connection, key, {step_id for line in lines if (step_id := _step_of(line, key)) is not None})


def _give_back(connection: Connection, key: str, ids: Set[int]) -> int:
    if not ids:
        return 0
    too_often = ids & set(connection.execute(statements.RETURNED_TOO_OFTEN, {"batch_key": key}).scalars())
    deliver(connection, key, (BatchAnswer(f"{key}-{each}", NO_ANSWER, _NO_ANSWER) for each in sorted(too_often)))
    returned = {"batch_key": key, "ids": sorted(ids - too_often)}
    back = connection.execute(statements.RETURN, returned).rowcount
    connection.execute(statements.COUNT, {"batch_key": key, "more_answered": 0, "more_unanswered": back})
    return back


def end(connection: Connection, key: str, *, seen: int = 0, problem: str | None = None) -> None:
    """Record that a batch has ended: lines without any answer wait for the next one.

    seen: how many lines of results there were.
    """
    _give_back(connection, key, set(connection.execute(statements.UNANSWERED_STEPS, {"batch_key": key}).scalars()))
    unneeded = func.greatest(seen - batches.c.answered - batches.c.unanswered, 0)
    _update(connection, key, state=BatchState.ENDED, ended_at=func.now(), unneeded=unneeded, problem=problem)


def lose(connection: Connection, key: str, error: BaseException, *, seen: int = 0) -> None:
    """Record that a provider lost what is left of a batch: lines wait for the next one, or a person has to act.

    error: what those questions are blocked with whose request was lost again. seen: as of `end`.
    """
    ids = connection.execute(statements.UNANSWERED_STEPS, {"batch_key": key}).scalars().all()
    lost = connection.execute(statements.LOSE, {"batch_key": key, "ids": ids}).all()
    # The others stay in the batch, so that `_block` finds them.
    _give_back(connection, key, {step_id for step_id, times in lost if times < statements.MOST_LOST})
    _block(connection, key, error)
    end(connection, key, seen=seen, problem=str(error))


def fail(connection: Connection, key: str, error: BaseException) -> None:
    """Record that none of a batch's lines was carried out, and block its questions, as a person has to act."""
    _block(connection, key, error)
    _update(connection, key, state=BatchState.FAILED, ended_at=func.now(), problem=str(error))


def _block(connection: Connection, key: str, error: BaseException) -> None:
    """Block the questions of the lines that are left in a batch."""
    # The questions first, as in every transaction that locks both.
    ids = connection.execute(statements.QUESTIONS, {"batch_key": key}).scalars().all()
    connection.execute(statements.BLOCK, {"ids": ids, "reason": reason_here(error)})
    connection.execute(statements.BLOCK_STEPS, {"ids": ids, "batch_key": key})
    connection.execute(statements.RELEASE.values(body=null()), {"batch_key": key})


def divide(connection: Connection, key: str, problem: str) -> None:
    """Record that a batch was more than the account may have waiting: its lines go out again, in smaller ones."""
    connection.execute(statements.RELEASE, {"batch_key": key})
    _update(connection, key, state=BatchState.FAILED, ended_at=func.now(), too_large=True, problem=problem)


def _update(connection: Connection, key: str, **values: Any) -> None:
    connection.execute(update(batches).where(statements.of_key).values(values), {"batch_key": key})


def _step_of(line: str, key: str) -> int | None:
    """Return the step that a line's id names; None where nobody gave that id."""
    batch, _, step_id = line.rpartition("-")
    # Numbers of 18 digits are all within a bigint; a longer one would be an error of the statement.
    return int(step_id) if batch == key and step_id.isascii() and step_id.isdigit() and len(step_id) < 19 else None


def _digest(lines: Iterable[BatchLine]) -> str:
    return hashlib.sha256(b"".join(msgspec.json.encode(line) for line in lines)).hexdigest()
