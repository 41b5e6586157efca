"""Messages of steps as they are in the queues: decoded strictly, since a queue may hold anything."""

from base64 import b64decode
from typing import Annotated, Literal, TypedDict

import msgspec
from kombu import serialization
from msgspec import Meta

from cotrail.errors import InputError
from cotrail.models.records.steps import Dispatch
from cotrail.tasks.routing import kind_in, task_name

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
