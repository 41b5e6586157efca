"""Roll call: every worker is asked over Redis who it is, and those that are there answer."""

import os
import socket
from collections.abc import Mapping
from typing import Any

import msgspec
from celery import Celery
from celery.worker.control import inspect_command
from msgspec import Struct

from cotrail.tasks.routing import BROKER_ERRORS, PATIENCE_SECONDS, broker_problem
from cotrail.tasks.runtime import runtime

CALL = "cotrail_roll_call"
"""The name of the remote control command."""

ANSWER_SECONDS = 2.0
"""How long answers are waited for; a worker that computes on all cores takes a while."""


class Present(Struct, frozen=True, kw_only=True):
    """A worker that answered."""

    worker: str
    """The process as the store names it: HOST:PID:KEY."""

    name: str
    host: str
    pid: int

    kinds: tuple[str, ...]
    """The kinds of steps that it carries out."""

    slots: int
    """How many steps at a time."""

    problem: str | None
    """What keeps it from its work."""


class RollCall(Struct, frozen=True, kw_only=True):
    """Who answered; problem: why the broker doesn't, where nobody could be asked."""

    present: tuple[Present, ...] = ()
    problem: str | None = None


def answer_calls() -> None:
    """Have the worker of this process answer."""
    inspect_command(name=CALL)(_answer)


def call(app: Celery, url: str) -> RollCall:
    """Ask all workers of the app's broker, which has that URL. Takes a few seconds at most."""
    if problem := broker_problem(url):
        return RollCall(problem=problem)
    patience = {"socket_timeout": PATIENCE_SECONDS + ANSWER_SECONDS, "socket_connect_timeout": PATIENCE_SECONDS}
    try:
        with app.connection_for_write(transport_options=patience) as connection:
            answers = app.control.broadcast(CALL, reply=True, timeout=ANSWER_SECONDS, connection=connection) or []
    except BROKER_ERRORS as error:
        return RollCall(problem=str(error))
    return RollCall(present=tuple(each for answer in answers for each in _read(answer)))


def _answer(state: Any, **_: object) -> dict[str, Any]:
    present = Present(
        worker=runtime().ledger.worker,
        name=state.hostname.partition("@")[0],
        host=socket.gethostname(),
        pid=os.getpid(),
        kinds=tuple(sorted(state.app.amqp.queues.consume_from)),
        slots=state.consumer.pool.limit,
        problem=runtime().problem(),
    )
    answer: dict[str, Any] = msgspec.to_builtins(present)
    return answer


def _read(answer: Mapping[str, Any]) -> list[Present]:
    """The answers by name; what isn't one, as of a worker of another version, is left out."""
    found = []
    for each in answer.values():
        try:
            found.append(msgspec.convert(each, Present))
        except msgspec.ValidationError:
            continue
    return found
