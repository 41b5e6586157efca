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
import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection, func, insert, null, update
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from cotrail.core.ports.batches import BatchAnswer, BatchLine, BatchStatus
from cotrail.models.records.budgets import STOPPED, reason_here
from cotrail.models.schema import states
from cotrail.models.schema.base import recordset
from cotrail.models.schema.service_tables import UNANSWERED, batch_items, batches
from cotrail.models.schema.tables import ACTIVE, QUESTION_OPEN, questions, runs, steps

MOST_LOST = 2
"""How often a provider may lose a request, which it may have charged; then a person has to act."""

BYTES_OF_TOKEN = 4
"""About how many bytes of a request are a token."""

MOST_RETURNED = 3
"""How often a request may come back without an answer; then that is its answer, and counts as a failed try."""

TOO_LARGE_SECONDS = 86_400.0
"""How long batches stay small after one was more than the account may have waiting."""

_key, _model, sender = (sa.bindparam(name, type_=sa.Text) for name in ("batch_key", "model", "sending"))
_ids = sa.bindparam("ids", type_=ARRAY(sa.BigInteger))
_waits = sa.and_(batch_items.c.batch.is_(None), UNANSWERED, ACTIVE)


def since(when: sa.ColumnElement[Any]) -> sa.ColumnElement[float]:
    """Return the seconds since then."""
    return sa.cast(sa.func.extract("epoch", sa.func.now() - when), sa.Double)


_of_batch: sa.ColumnElement[bool] = batch_items.c.batch == _key
_of_model = batch_items.c.model_name == _model
_concerned = sa.select(steps.c.run_id).where(_waits, _of_model)
_of_run = steps.c.run_id == runs.c.id
MORE = sa.select(
    sa.exists().where(
        runs.c.batched,
        runs.c.digest.is_(None),
        runs.c.desired_state == states.DesiredState.ACTIVE,
        sa.or_(runs.c.model_name == _model, runs.c.id.in_(_concerned)),
        sa.not_(STOPPED),
        sa.or_(
            *(
                sa.exists().where(_of_run, QUESTION_OPEN, steps.c.state == state).correlate(runs)
                for state in (states.StepState.WAITING, states.StepState.READY, states.StepState.RUNNING)
            )
        ),
    )
)
"""Tells whether further requests to the model may come that wait for no batch: the runs have steps to carry out."""

WAITING_MODELS = sa.select(batch_items.c.model_name).where(_waits).distinct().order_by(batch_items.c.model_name)
WAITING = (
    sa.select(
        sa.func.count().label("lines"),
        sa.func.sum(sa.func.octet_length(batch_items.c.body)).label("bytes"),
        sa.func.max(since(batch_items.c.since)).label("seconds"),
    )
    .where(_waits, _of_model)
    .having(sa.func.count() > 0)
)
_wanted = sa.select(sa.func.count()).where(batch_items.c.batch == batches.c.key, UNANSWERED).scalar_subquery()
OPEN = (
    sa.select(
        *(batches.c[name] for name in ("key", "model_name", "lines", "provider_id", "created_at")),
        (batches.c.digest != "").label("asked"),
        sa.func.coalesce(since(batches.c.checked_at), since(batches.c.created_at)).label("unchecked"),
        since(batches.c.created_at).label("age"),
        _wanted.label("wanted"),
    )
    .where(batches.c.state.in_(states.OPEN_BATCHES))
    .order_by(batches.c.created_at, batches.c.key)
)
KNOWN = sa.select(batches.c.provider_id).where(batches.c.provider_id.is_not(None))
SMALLEST = sa.select(sa.func.min(batches.c.lines)).where(
    batches.c.model_name == _model, batches.c.too_large, since(batches.c.created_at) < TOO_LARGE_SECONDS
)
FULL = sa.select(sa.func.min(since(batches.c.ended_at))).where(
    batches.c.model_name == _model, batches.c.too_large, batches.c.lines == 1
)

TAKE = (
    sa.select(batch_items.c.step_id, sa.func.octet_length(batch_items.c.body))
    .where(_waits, _of_model)
    .order_by(batch_items.c.step_id)
    .limit(sa.bindparam("room", type_=sa.BigInteger))
    .with_for_update(of=batch_items)
)
ASSIGN = sa.update(batch_items).where(batch_items.c.step_id == sa.func.any(_ids)).values(batch=_key)
LINES = (
    sa.select(batch_items.c.step_id, batch_items.c.body).where(_of_batch, UNANSWERED).order_by(batch_items.c.step_id)
)
UNANSWERED_STEPS = sa.select(batch_items.c.step_id).where(_of_batch, UNANSWERED).order_by(batch_items.c.step_id)
of_key = batches.c.key == _key
OWN = sa.update(batches).where(of_key, batches.c.sender == sender, batches.c.provider_id.is_(None))

_answers = recordset(sa.column("id", sa.BigInteger), sa.column("answer", sa.Text))
_in_batch = (
    sa.select(steps.c.id, _answers.c.answer)
    .where(steps.c.id == _answers.c.id, _of_batch, UNANSWERED)
    .order_by(steps.c.id)
    .with_for_update(of=steps)
    .cte("in_batch")
)
_stored = (
    sa.update(batch_items)
    .where(batch_items.c.step_id == _in_batch.c.id)
    .values(answers=sa.func.array_append(batch_items.c.answers, _in_batch.c.answer), body=sa.null(), returned=0)
    .returning(batch_items.c.step_id)
    .cte("stored")
)
_made_ready = (
    sa.update(steps)
    .where(steps.c.id == _in_batch.c.id)
    .values(
        # While this step waited, another one may have blocked their question.
        state=sa.case((QUESTION_OPEN, sa.literal(states.StepState.READY)), else_=sa.literal(states.StepState.BLOCKED)),
        sent_at=sa.null(),
        not_before=sa.null(),
    )
)
DELIVER = sa.select(sa.func.count()).select_from(_in_batch).add_cte(_stored, _made_ready.cte("made_ready"))
RETURN = (
    sa.update(batch_items)
    .where(_of_batch, batch_items.c.body.is_not(None), batch_items.c.step_id == sa.func.any(_ids))
    .values(batch=sa.null(), since=sa.func.now(), returned=batch_items.c.returned + 1)
    .returning(batch_items.c.step_id)
)
LOSE = (
    sa.update(batch_items)
    .where(_of_batch, batch_items.c.body.is_not(None), batch_items.c.step_id == sa.func.any(_ids))
    .values(
        lost=batch_items.c.lost + 1,
        lost_tokens=batch_items.c.lost_tokens + sa.func.octet_length(batch_items.c.body) / BYTES_OF_TOKEN,
    )
    .returning(batch_items.c.step_id, batch_items.c.lost)
)
COUNT = (
    sa.update(batches)
    .where(of_key)
    .values(
        answered=batches.c.answered + sa.bindparam("more_answered", type_=sa.BigInteger),
        unanswered=batches.c.unanswered + sa.bindparam("more_unanswered", type_=sa.BigInteger),
    )
)
RETURNED_TOO_OFTEN = sa.select(batch_items.c.step_id).where(
    _of_batch, batch_items.c.body.is_not(None), batch_items.c.returned >= MOST_RETURNED
)
QUESTIONS = (
    sa.select(questions.c.id)
    .where(
        questions.c.status.in_(states.UNENDED_QUESTIONS),
        questions.c.id.in_(sa.select(steps.c.question_id).where(_of_batch, UNANSWERED)),
    )
    .order_by(questions.c.id)
    .with_for_update(key_share=True)
)
BLOCK = (
    sa.update(questions)
    .where(questions.c.id == sa.func.any(_ids))
    .values(status=states.QuestionStatus.BLOCKED, reason=sa.bindparam("reason", type_=JSONB), finished_at=sa.func.now())
)
BLOCK_STEPS = (
    sa.update(steps)
    .where(
        steps.c.question_id == sa.func.any(_ids),
        sa.or_(
            steps.c.state.in_([states.StepState.WAITING, states.StepState.READY]),
            sa.and_(
                steps.c.state == states.StepState.BATCHED,
                sa.exists().where(batch_items.c.step_id == steps.c.id, _of_batch),
            ),
        ),
    )
    .values(state=states.StepState.BLOCKED)
)
MISSING_SECONDS = sa.select(since(batches.c.missing_since)).where(of_key)
RELEASE = (
    sa.update(batch_items)
    .where(_of_batch, batch_items.c.body.is_not(None))
    .values(batch=sa.null(), since=sa.func.now())
)


WAVE_SECONDS = 600.0
"""How long a request waits for others at most until a batch is sent without them."""

NO_ANSWER = 408
"""The status of an answer that says that there will be none, which counts as a failed try."""

_NO_ANSWER = f'{{"error": {{"message": "{MOST_RETURNED + 1} batches ended without an answer"}}}}'


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
    return list(connection.execute(WAITING_MODELS).scalars())


def read_waiting(connection: Connection, model_name: str) -> WaitingRequests | None:
    """Return the requests to a model that wait for a batch, None without any; those of `waiting_models`."""
    row = connection.execute(WAITING, {"model": model_name}).mappings().one_or_none()
    if row is None:
        return None
    return WaitingRequests(**row, more=connection.execute(MORE, {"model": model_name}).scalar_one())


def read_open(connection: Connection) -> list[OpenBatch]:
    """Return the batches that haven't ended, the oldest first."""
    return [OpenBatch(**row) for row in connection.execute(OPEN).mappings()]


def known_ids(connection: Connection) -> frozenset[str]:
    """Return the providers' ids of all recorded batches, whatever their models: these may share an account."""
    return frozenset(connection.execute(KNOWN).scalars())


def full_seconds(connection: Connection, model_name: str) -> float | None:
    """Return how long ago the account had no room for a single request to the model; None where it always had."""
    seconds = connection.execute(FULL, {"model": model_name}).scalar()
    return None if seconds is None else float(seconds)


def smallest_too_large(connection: Connection, model_name: str) -> int | None:
    """Return how many lines the smallest of the model's batches had that was too large lately; None without one."""
    return connection.execute(SMALLEST, {"model": model_name}).scalar()


def form(connection: Connection, model_name: str, sender: str, most_lines: int, most_bytes: int) -> str | None:
    """Record a batch of the requests to a model that wait, as many as fit; returns its key, None where none waits.

    sender: this process. The batch is sent once this is committed: intent before deed.
    """
    ids: list[int] = []
    size = 0
    for step_id, length in connection.execute(TAKE, {"model": model_name, "room": most_lines}):
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
    connection.execute(ASSIGN, {"batch_key": key, "ids": ids})
    return key


def read_lines(connection: Connection, key: str) -> list[BatchLine]:
    """Return the lines of a batch whose steps still wait for it."""
    rows = connection.execute(LINES, {"batch_key": key})
    return [BatchLine(f"{key}-{row.step_id}", row.body) for row in rows]


def take_over(connection: Connection, key: str, sender: str) -> None:
    """Make this process the one that sends a batch which another one may have been about to send."""
    _update(connection, key, sender=sender)


def about_to_send(connection: Connection, key: str, sender: str, lines: Sequence[BatchLine]) -> bool:
    """Note that a batch is sent right now; returns whether this process still is the one to send it."""
    # Noted before the request leaves: after a crash, a digest says that the provider may have the batch.
    own = OWN.values(checked_at=func.now(), missing_since=None, lines=len(lines), digest=_digest(lines))
    return connection.execute(own, {"batch_key": key, "sending": sender}).rowcount == 1


def sent(connection: Connection, key: str, sender: str, provider_id: str) -> bool:
    """Record that the provider has a batch; returns whether this process still was the one to send it."""
    values = {"provider_id": provider_id, "state": states.BatchState.SENT, "sent_at": func.now()}
    own = OWN.values(values | {"problem": None, "missing_since": None})
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
    return float(connection.execute(MISSING_SECONDS, {"batch_key": key}).scalar_one())


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
    delivered = int(connection.execute(DELIVER, {"rows": rows, "batch_key": key}).scalar_one())
    connection.execute(COUNT, {"batch_key": key, "more_answered": delivered, "more_unanswered": 0})
    return delivered


def give_back(connection: Connection, key: str, lines: Iterable[str]) -> int:
    """Have lines of a batch that got no answer wait for the next one; returns how many do.

    A line that comes back again and again gets that as its answer, which counts as a failed try of its step.
    """
    return _give_back(connection, key, {step_id for line in lines if (step_id := _step_of(line, key)) is not None})


def _give_back(connection: Connection, key: str, ids: Set[int]) -> int:
    if not ids:
        return 0
    too_often = ids & set(connection.execute(RETURNED_TOO_OFTEN, {"batch_key": key}).scalars())
    deliver(connection, key, (BatchAnswer(f"{key}-{each}", NO_ANSWER, _NO_ANSWER) for each in sorted(too_often)))
    returned = {"batch_key": key, "ids": sorted(ids - too_often)}
    back = connection.execute(RETURN, returned).rowcount
    connection.execute(COUNT, {"batch_key": key, "more_answered": 0, "more_unanswered": back})
    return back


def end(connection: Connection, key: str, *, seen: int = 0, problem: str | None = None) -> None:
    """Record that a batch has ended: lines without answer wait for the next; seen: how many lines of results it had."""
    _give_back(connection, key, set(connection.execute(UNANSWERED_STEPS, {"batch_key": key}).scalars()))
    unneeded = func.greatest(seen - batches.c.answered - batches.c.unanswered, 0)
    _update(connection, key, state=states.BatchState.ENDED, ended_at=func.now(), unneeded=unneeded, problem=problem)


def lose(connection: Connection, key: str, error: BaseException, *, seen: int = 0) -> None:
    """Record that a provider lost what is left of a batch: lines wait for the next one, or a person has to act.

    error: what those questions are blocked with whose request was lost again. seen: as of `end`.
    """
    ids = connection.execute(UNANSWERED_STEPS, {"batch_key": key}).scalars().all()
    lost = connection.execute(LOSE, {"batch_key": key, "ids": ids}).all()
    # The others stay in the batch, so that `_block` finds them.
    _give_back(connection, key, {step_id for step_id, times in lost if times < MOST_LOST})
    _block(connection, key, error)
    end(connection, key, seen=seen, problem=str(error))


def fail(connection: Connection, key: str, error: BaseException) -> None:
    """Record that none of a batch's lines was carried out, and block its questions, as a person has to act."""
    _block(connection, key, error)
    _update(connection, key, state=states.BatchState.FAILED, ended_at=func.now(), problem=str(error))


def _block(connection: Connection, key: str, error: BaseException) -> None:
    """Block the questions of the lines that are left in a batch."""
    # The questions first, as in every transaction that locks both.
    ids = connection.execute(QUESTIONS, {"batch_key": key}).scalars().all()
    connection.execute(BLOCK, {"ids": ids, "reason": reason_here(error)})
    connection.execute(BLOCK_STEPS, {"ids": ids, "batch_key": key})
    connection.execute(RELEASE.values(body=null()), {"batch_key": key})


def divide(connection: Connection, key: str, problem: str) -> None:
    """Record that a batch was more than the account may have waiting: its lines go out again, in smaller ones."""
    connection.execute(RELEASE, {"batch_key": key})
    _update(connection, key, state=states.BatchState.FAILED, ended_at=func.now(), too_large=True, problem=problem)


def _update(connection: Connection, key: str, **values: Any) -> None:
    connection.execute(update(batches).where(of_key).values(values), {"batch_key": key})


def _step_of(line: str, key: str) -> int | None:
    """Return the step that a line's id names; None where nobody gave that id."""
    batch, _, step_id = line.rpartition("-")
    # Numbers of 18 digits are all within a bigint; a longer one would be an error of the statement.
    return int(step_id) if batch == key and step_id.isascii() and step_id.isdigit() and len(step_id) < 19 else None


def _digest(lines: Iterable[BatchLine]) -> str:
    return hashlib.sha256(b"".join(msgspec.json.encode(line) for line in lines)).hexdigest()
