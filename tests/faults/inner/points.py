"""Named points in the product's code: the process that reaches the point that a test has armed kills itself.

With SIGKILL, so that nothing is cleaned up. Arming a point names the process and the passage at which it dies; the
process writes down which steps were concerned, and the point is no longer armed.
"""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct
from redis.connection import AbstractConnection
from sqlalchemy import Connection, Engine, event

from cotrail.core.results import Result
from cotrail.engines.language_models.served import stream
from cotrail.engines.retrieval import tantivy
from cotrail.models.commands import control, submission
from cotrail.models.execution import admission
from cotrail.models.execution import recovery as upkeep
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.steps import Dispatch
from cotrail.tasks import routing, runtime, step
from cotrail.tasks.routing import Lease
from cotrail.tasks.runtime import Runtime


class Point(StrEnum):
    """A point at which a process may be killed."""

    TAKEN = "message taken, not claimed yet"
    CLAIMING = "in the claim's transaction, before its COMMIT"
    CLAIMED = "claimed, not executed yet"
    SEARCHING = "in mid-search"
    GENERATING = "in mid-generation"
    EXECUTED = "executed, the result not handed in yet"
    COMMITTING = "in the commit's transaction, before its COMMIT"
    COMMITTED = "committed, what follows not sent yet"
    SENDING = "in mid-send"
    SENT = "sent, the message not acknowledged yet"
    RETRYING = "in a retry's transaction, before its COMMIT"
    RETRIED = "a retry's step given back"
    HOLDING = "in the transaction that holds a step back, before its COMMIT"
    BEATING = "in a heartbeat's transaction, before its COMMIT"
    ADMITTING = "in the admission's transaction, before its COMMIT"
    MARKED = "marked as sent, not sent yet"
    EXPIRING = "in the transaction that takes steps back, before its COMMIT"
    EXPIRED = "steps taken back, nothing sent yet"
    SUBMITTING = "in a submission's transaction, before its COMMIT"
    CANCELLING = "in a cancellation's transaction, before its COMMIT"
    RESUMING = "in a resumption's transaction, before its COMMIT"


class Armed(Struct, frozen=True, kw_only=True):
    """An armed point; passage: the process dies when it reaches the point for this time, from 1."""

    point: Point
    passage: int = 1


class Reached(Struct, frozen=True, kw_only=True):
    """The process that died, and the steps concerned."""

    pid: int
    steps: tuple[int, ...] = ()


class Points:
    """The points from a test's side: arms one per process, and reads who died there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def arm(self, point: Point, process: str, passage: int = 1) -> None:
        self._reached(process).unlink(missing_ok=True)
        _write(self._armed(process), Armed(point=point, passage=passage))

    def disarm(self) -> None:
        for path in self._folder.glob("armed.*"):
            path.unlink(missing_ok=True)

    def reached(self, process: str) -> Reached | None:
        with suppress(FileNotFoundError):
            return msgspec.json.decode(self._reached(process).read_bytes(), type=Reached)
        return None

    def pass_(self, point: Point, process: str, passages: Counter[Point], steps: Iterable[int]) -> None:
        """Dies here if this point is armed."""
        try:
            armed = msgspec.json.decode(self._armed(process).read_bytes(), type=Armed)
        except FileNotFoundError:
            passages.clear()
            return
        if armed.point is not point:
            return
        passages[point] += 1
        if passages[point] == armed.passage:
            self._armed(process).unlink()
            _write(self._reached(process), Reached(pid=os.getpid(), steps=tuple(steps)))
            os.kill(os.getpid(), signal.SIGKILL)

    def _armed(self, process: str) -> Path:
        return self._folder / f"armed.{process}"

    def _reached(self, process: str) -> Path:
        return self._folder / f"reached.{process}"


def install(folder: Path, process: str) -> None:
    """Installs all points in this process."""
    points, passages, lock = Points(folder), Counter[Point](), threading.Lock()

    def at(point: Point, steps: Iterable[int] = ()) -> None:
        with lock:
            points.pass_(point, process, passages, steps)

    _in_transactions(at)
    _in_steps(at)
    _around_sending(at)
    _around_upkeep(at)


At = Callable[..., None]

_here = threading.local()
"""State of this thread: `point` for its transaction's COMMIT, `sending` while messages are written to Redis."""

_executing: set[int] = set()
"""The steps that this process executes, in any thread.

Only those whose execution is written down (`executions`), as a test counts by that how often each was begun.
"""


def _in_transactions(at: At) -> None:
    """Points before and after the COMMIT of a function's transaction."""
    for owner, name, point in (
        (Ledger, "claim", Point.CLAIMING),
        (Ledger, "commit", Point.COMMITTING),
        (Ledger, "retry", Point.RETRYING),
        (Ledger, "hold", Point.HOLDING),
        (Ledger, "beat", Point.BEATING),
        (submission, "submit_together", Point.SUBMITTING),
        (control, "cancel", Point.CANCELLING),
        (control, "resume", Point.RESUMING),
    ):
        setattr(owner, name, _before_commit(getattr(owner, name), point))
    _after(Ledger, "commit", at, Point.COMMITTED)
    _after(Ledger, "retry", at, Point.RETRIED)

    @event.listens_for(Engine, "commit")
    def before_commit(_: object) -> None:
        if point := getattr(_here, "point", None):
            _here.point = None
            at(point, _here.steps)


def _before_commit(function: Callable[..., Any], point: Point) -> Callable[..., Any]:
    @wraps(function)
    def known(*arguments: Any, **named: Any) -> Any:
        _here.point, _here.steps = point, _steps_in(arguments)
        if point is Point.BEATING:
            # Of the steps that are claimed, some may not have begun.
            _here.steps = [step_id for step_id in _here.steps if step_id in _executing]
            _here.point = point if _here.steps else None
        try:
            return function(*arguments, **named)
        finally:
            _here.point = None

    return known


def _after(owner: Any, name: str, at: At, point: Point) -> None:
    function = getattr(owner, name)

    def then(*arguments: Any) -> Any:
        result = function(*arguments)
        at(point, _steps_in(arguments))
        return result

    setattr(owner, name, then)


def _in_steps(at: At) -> None:
    """Points between a message and its result."""
    perform, take, search = step.perform, stream.ServerStream.take, tantivy.TantivyRetriever.search
    claim_ahead, carry_out = Runtime.claim_ahead, step.carry_out

    def claiming(self: Runtime, message: Dispatch, *, in_turn: bool = False) -> Future[Lease | None]:
        at(Point.TAKEN, [message.step_id])
        return claim_ahead(self, message, in_turn=in_turn)

    def performing(message: Dispatch, execute: step.Execute) -> Any:
        def executing(runtime: Runtime, claim: Claim) -> Result:
            at(Point.CLAIMED, [claim.step_id])
            result = execute(runtime, claim)
            at(Point.EXECUTED, [claim.step_id])
            return result

        return perform(message, executing)

    def carrying_out(runtime: Runtime, claim: Claim) -> Result:
        _executing.add(claim.step_id)
        try:
            return carry_out(runtime, claim)
        finally:
            _executing.remove(claim.step_id)

    def taking(self: stream.ServerStream, data: str) -> bool:
        enough = take(self, data)
        if self.text and not enough:
            at(Point.GENERATING, list(_executing))
        return enough

    def searching(*arguments: Any, **named: Any) -> Any:
        found = search(*arguments, **named)
        at(Point.SEARCHING, list(_executing))
        return found

    Runtime.claim_ahead = claiming  # type: ignore[method-assign]
    step.perform, step.carry_out = performing, carrying_out
    stream.ServerStream.take = taking  # type: ignore[method-assign]
    tantivy.TantivyRetriever.search = searching  # type: ignore[method-assign]


def _around_sending(at: At) -> None:
    """Points before, within and after the one write that sends messages."""
    send, write = routing.send, cast(Callable[..., None], AbstractConnection.send_packed_command)

    def sending(messages: Sequence[Dispatch]) -> int:
        steps = [message.step_id for message in messages]
        if not steps:
            return send(messages)
        at(Point.MARKED, steps)
        with _doing_sending(steps):
            sent = send(messages)
        at(Point.SENT, steps)
        return sent

    def writing(self: AbstractConnection, command: Any, *arguments: Any, **named: Any) -> None:
        steps = getattr(_here, "sending", None)
        packed = command if isinstance(command, bytes) else b"".join(command)
        if not steps or len(packed) < LARGE * len(steps):
            write(self, command, *arguments, **named)
            return
        write(self, [packed[: len(packed) // 2]])
        at(Point.SENDING, steps)
        write(self, [packed[len(packed) // 2 :]], check_health=False)

    routing.send = runtime.send = sending  # type: ignore[attr-defined]
    AbstractConnection.send_packed_command = writing  # type: ignore[method-assign]


LARGE = 200
"""The fewest bytes of a message, which distinguish the write that holds messages from a connection's handshake."""


@contextmanager
def _doing_sending(steps: Sequence[int]) -> Iterator[None]:
    _here.sending = steps
    try:
        yield
    finally:
        _here.sending = None


def _around_upkeep(at: At) -> None:
    """Points within and after the transactions of a sweep, which the callers of these functions open."""
    expire, take, admit = upkeep.expire_leases, upkeep.take_lost, admission.admit

    def expiring(connection: Connection) -> list[int]:
        expired = _here.expired = expire(connection)
        if expired:
            _here.point, _here.steps = Point.EXPIRING, expired
        return expired

    def taking(*arguments: Any) -> list[Dispatch]:
        if expired := getattr(_here, "expired", None):
            _here.expired = None
            at(Point.EXPIRED, expired)
        return take(*arguments)

    def admitting(connection: Connection, exhausted: Collection[str] = ()) -> list[Dispatch]:
        admitted = admit(connection, exhausted)
        if admitted:
            _here.point, _here.steps = Point.ADMITTING, _steps_in([admitted])
        return admitted

    upkeep.expire_leases, admission.admit = expiring, admitting
    upkeep.take_lost = taking  # type: ignore[assignment]


def _steps_in(arguments: Sequence[Any]) -> list[int]:
    """The steps of a call, which its arguments name in one form or another."""
    flat = [each for argument in arguments for each in (argument if isinstance(argument, list | tuple) else [argument])]
    claims = [each.claim if isinstance(each, Completion) else each for each in flat]
    return [each.step_id for each in claims if isinstance(each, Claim | Dispatch)]


def _write(path: Path, content: Struct) -> None:
    written = path.with_name(f"new.{path.name}.{os.getpid()}")
    written.write_bytes(msgspec.json.encode(content))
    written.replace(path)
