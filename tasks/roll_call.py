"""Roll call: every worker is asked over Redis who it is, and those that are there answer (`cotrail.workers.app`)."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from celery import Celery
from msgspec import Struct

from cotrail.tasks.broker_health import PATIENCE_SECONDS, broker_problem
from cotrail.tasks.routing import BROKER_ERRORS

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

    variables: tuple[str, ...]
    """Those of the environment variables that were asked about that it has; never what they hold."""


class RollCall(Struct, frozen=True, kw_only=True):
    """Who answered; problem: why the broker doesn't, where nobody could be asked."""

    present: tuple[Present, ...] = ()
    problem: str | None = None


def call(app: Celery, url: str, variables: Sequence[str] = ()) -> RollCall:
    """Ask all workers of the app's broker, which has that URL. Takes a few seconds at most.

    variables: the names of environment variables of which workers say whether they are set.
    """
    if problem := broker_problem(url, app.conf.broker_transport_options.get("global_keyprefix", "")):
        return RollCall(problem=problem)
    patience = {"socket_timeout": PATIENCE_SECONDS + ANSWER_SECONDS, "socket_connect_timeout": PATIENCE_SECONDS}
    try:
        with app.connection_for_write(transport_options=patience) as connection:
            mailbox = app.control.mailbox(connection)
            # It would send over the app's pool, which is as patient as a worker may be, and keep the pool's broker.
            mailbox.producer_pool = None
            answers = mailbox.multi_call(CALL, {"variables": list(variables)}, timeout=ANSWER_SECONDS)
    except BROKER_ERRORS as error:
        return RollCall(problem=str(error))
    return RollCall(present=tuple(each for answer in answers or () for each in _answers(answer)))


def set_variables(names: Sequence[object]) -> tuple[str, ...]:
    """Those of these environment variables that are set and hold more than white space."""
    return tuple(name for name in names if isinstance(name, str) and os.environ.get(name, "").strip())


def _answers(answer: Mapping[str, Any]) -> list[Present]:
    """The answers by name; what isn't one, as of a worker of another version, is left out."""
    present = []
    for each in answer.values():
        with suppress(msgspec.ValidationError):
            present.append(msgspec.convert(each, Present))
    return present
