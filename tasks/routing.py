"""Routing of steps to the queues of their kinds; their messages, decoded strictly, since a queue may hold anything."""

import logging
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Annotated, Literal, TypedDict
from uuid import uuid4

import msgspec
from celery import current_app
from kombu import serialization
from kombu.exceptions import KombuError
from kombu.messaging import Producer
from msgspec import Meta
from redis import RedisError

from cotrail.core.actions.registry import KINDS
from cotrail.core.ports.cancellation import Cancellation
from cotrail.errors import InputError
from cotrail.models.execution.leases import Claim
from cotrail.models.records.steps import Dispatch

logger = logging.getLogger(__name__)

BROKER_ERRORS = (KombuError, RedisError, OSError)
"""Errors of a broker that doesn't answer, or that refuses messages since it is full, loading or a replica."""

TASKS = "cotrail."
"""The beginning of the names of all tasks."""

_SERVED = ".served"


def task_name(kind: str) -> str:
    """The Celery task that executes steps of a kind."""
    return f"{TASKS}{kind}"


def queues_of(kind: str) -> dict[str, tuple[bool, ...]]:
    """The queues of a kind's steps, and for each of them whether the models of its runs are served.

    Steps that a language model carries out have two: those of served models never wait for a model that computes.
    """
    if KINDS[kind].role == "generation":
        return {kind: (False,), served_queue(kind): (True,)}
    return {kind: (False, True)}


def served_queue(kind: str) -> str:
    """The queue of a kind's steps whose language model is served."""
    return f"{kind}{_SERVED}"


def kind_in(queue: str) -> str | None:
    """The kind of the steps whose queue this is; None where it is no queue of steps."""
    kind = queue.removesuffix(_SERVED)
    return kind if kind in KINDS and queue in queues_of(kind) else None


def message_of(task: str, arguments: Sequence[object]) -> Dispatch | None:
    """The message of a task's call; None where the task isn't a step."""
    kind = task.removeprefix(TASKS)
    match arguments:
        case [int(step_id), int(epoch)] if kind in KINDS and task == task_name(kind):
            return Dispatch(step_id, epoch, kind)
    return None


LEVELS = (0, 2, 4, 6, 8)
"""The levels of priority that queues have, the first one first: a list in Redis each."""


def priority(message: Dispatch) -> int:
    """The level of a step's message.

    The first is that of questions that somebody asked and waits for. Of the others, the further one is, the sooner its
    next step is taken. Begun questions then end before new ones begin, and a model sees the paragraphs of a question
    again while its prefix cache still holds them.
    """
    if message.asked:
        return LEVELS[0]
    return LEVELS[-1 - min(message.sequence // 2, len(LEVELS) - 2)]


def send(messages: Sequence[Dispatch]) -> int:
    """Puts messages into their queues, all in one round trip; returns how many: 0 where the broker takes none.

    Nothing is lost then, as the store is the outbox: the steps are recorded as ready, and the maintenance process sends
    them again. So it is with steps of a kind that this process doesn't know: one that was started later sends them.
    """
    sendable = [message for message in messages if message.kind in KINDS]
    if unknown := sorted({message.kind for message in messages} - KINDS.keys()):
        logger.warning("this process knows no %s steps and doesn't send them; restart it", " or ".join(unknown))
    if not sendable:
        return 0
    try:
        with current_app.producer_or_acquire() as producer, producer.batch():
            for message in sendable:
                _post(producer, message)
    except BROKER_ERRORS as error:
        logger.warning("%d steps aren't sent yet: the broker takes no messages (%s)", len(sendable), error)
        return 0
    return len(sendable)


def _post(producer: Producer, message: Dispatch) -> None:
    """Sends one message as `Celery.send_task` does, but without declaring the queue: a worker does as it starts."""
    amqp, name, arguments = current_app.amqp, task_name(message.kind), (message.step_id, message.epoch)
    task = amqp.create_task_message(
        str(uuid4()),
        name,
        arguments,
        {},
        ignore_result=True,
        argsrepr=message.about,
        kwargsrepr=f"step_id={message.step_id}, epoch={message.epoch}",
    )
    queue = next(queue for queue, served in queues_of(message.kind).items() if message.served in served)
    amqp.send_task_message(producer, name, task, queue=queue, declare=[], priority=priority(message))


SERIALIZER = "cotrail-json"
"""Celery's name of the JSON that msgspec writes and reads, which takes a fraction of the time of Celery's own."""

CONTENT_TYPE = "application/x-cotrail+json"

LONGEST_REASON = 200
"""Most characters of the reason why a message can't be read; a part of them may be the message's own."""

_Id = Annotated[int, Meta(ge=1, le=2**63 - 1)]
_Epoch = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_Arguments = tuple[_Id, _Epoch]
_NoKeywords = Annotated[dict[str, None], Meta(max_length=0)]
_NoCallbacks = dict[str, None]


class _Headers(TypedDict):
    """The headers of a Celery task that are needed here."""

    task: str
    id: str
    root_id: str
    argsrepr: str
    kwargsrepr: str
    origin: str
    ignore_result: bool


class _Delivery(TypedDict):
    exchange: Literal[""]
    routing_key: str


class _Properties(TypedDict):
    correlation_id: str
    delivery_mode: int
    delivery_info: _Delivery
    priority: Annotated[int, Meta(ge=0, le=9)]
    body_encoding: Literal["base64"]
    delivery_tag: str


Message = TypedDict(
    "Message",
    {
        "body": str,
        "content-type": Literal["application/x-cotrail+json"],
        "content-encoding": Literal["utf-8"],
        "headers": _Headers,
        "properties": _Properties,
    },
)
"""A message as kombu's virtual transports pass it on; other fields are dropped."""

_MESSAGES = msgspec.json.Decoder(Message)
_BODIES = msgspec.json.Decoder(tuple[_Arguments, _NoKeywords, _NoCallbacks])


def read_message(raw: bytes, queue: str) -> tuple[Message, Dispatch]:
    """A message out of a queue of steps, decoded; raises InputError where it isn't the message of such a step."""
    kind = kind_in(queue) or queue
    try:
        message = _MESSAGES.decode(raw)
        (step_id, epoch), _, _ = _BODIES.decode(b64decode(message["body"], validate=True))
    except (ValueError, RecursionError) as error:
        raise InputError(repr(str(error)[:LONGEST_REASON])) from error
    if message["headers"]["task"] != task_name(kind) or message["properties"]["delivery_info"]["routing_key"] != queue:
        raise InputError(f"it is that of another task or queue than {queue}")
    return message, Dispatch(step_id, epoch, kind)


serialization.register(
    SERIALIZER, lambda value: msgspec.json.encode(value).decode(), msgspec.json.decode, CONTENT_TYPE, "utf-8"
)


class Lease:
    """A claim and the time for which it is known to be good; threads share it.

    cancellation: cuts off the step's generation.
    renewed: when the latest renewal that succeeded was asked for; began: when the execution began, None before. Both
        are times of the monotonic clock.
    """

    # The plain attributes need no lock: each is written by one thread at a time (`renewed` by the heartbeat, `began`
    # by the executing thread), and assigning a reference is atomic under the GIL.

    def __init__(self, claim: Claim, renewed: float) -> None:
        self.claim = claim
        self.cancellation = Cancellation()
        self.renewed = renewed
        self.began: float | None = None
        self._ending = threading.Lock()

    def begin(self) -> None:
        """Notes that the execution begins."""
        self.began = time.monotonic()

    def settle(self) -> bool:
        """Return whether the caller is the first to end the execution; only the first may record how it ended."""
        # A lock that is never released is a flag that only one thread can set: either the executing thread or the
        # heartbeat, which gives up executions that are overdue.
        return self._ending.acquire(blocking=False)

    def took(self) -> float:
        """Seconds since the execution began; 0 before."""
        return 0.0 if self.began is None else time.monotonic() - self.began


NextInTurn = Callable[[str, Sequence[int], Sequence[str], int], list[Dispatch]]
"""Returns the steps that are next: see `cotrail.models.execution.leases.next_in_turn`."""


class Turns:
    """Claims steps for messages that only say that a step waits. For one thread.

    next_in_turn: which steps are next; claim: claims them, each unless another worker was faster.
    """

    def __init__(self, next_in_turn: NextInTurn, claim: Callable[[Sequence[Dispatch]], list[Lease | None]]) -> None:
        self._next_in_turn = next_in_turn
        self._claim = claim
        self._latest: dict[str, None] = {}

    def claim(self, messages: Sequence[Dispatch]) -> list[Lease | None]:
        """Claims a step for each message; None where none waits any more."""
        leases: dict[Dispatch, Lease] = {}
        for kind, group in groupby(sorted(messages, key=_kind), _kind):
            of_kind = list(group)
            # Fewer leases than messages where other workers were faster or no more steps wait.
            leases |= dict(zip(of_kind, self._claimed(kind, of_kind), strict=False))
        return [leases.pop(message, None) for message in messages]

    def _claimed(self, kind: str, messages: Sequence[Dispatch]) -> Iterable[Lease]:
        own, left = [message.step_id for message in messages], len(messages)
        while left and (chosen := self._next_in_turn(kind, own, list(self._latest), left)):
            for lease in self._claim(chosen):
                if lease is not None:
                    left -= 1
                    self._had_turn(lease)
                    yield lease

    def _had_turn(self, lease: Lease) -> None:
        # What is adopted takes nothing of the model's time, and so is no turn.
        if lease.claim.adopted is None:
            model = lease.claim.run.model_name
            # A dict as an ordered set: put in again, the model is the one whose turn was last.
            self._latest.pop(model, None)
            self._latest[model] = None


def _kind(message: Dispatch) -> str:
    return message.kind
