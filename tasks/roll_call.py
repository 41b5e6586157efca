"""Roll call: every worker is asked over Redis who it is, and those that are there answer (`cotrail.workers.app`)."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec
from celery import Celery
from msgspec import Struct

from cotrail.tasks.routing import BROKER_ERRORS, PATIENCE_SECONDS, broker_problem

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
    return RollCall(present=tuple(each for answer in answers for each in _answers(answer)))


def _answers(answer: Mapping[str, Any]) -> list[Present]:
    """The answers by name; what isn't one, as of a worker of another version, is left out."""
    present = []
    for each in answer.values():
        with suppress(msgspec.ValidationError):
            present.append(msgspec.convert(each, Present))
    return present
