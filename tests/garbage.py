"""Garbage that may be in a step's queue and isn't a step's message."""

import json
from base64 import b64encode
from typing import Any

from cotrail.core.actions.registry import KINDS
from cotrail.tasks.routing import CONTENT_TYPE

QUEUES = [
    f"cotrail:{kind}{priority}"
    for kind in KINDS
    for priority in ("", "\x06\x162", "\x06\x164", "\x06\x166", "\x06\x168")
]
"""The keys in Redis of all queues, each of which has one for every degree of priority."""

EMBED: dict[str, object] = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


def message(body: object, kind: str = "reason", **changes: object) -> bytes:
    """A Celery message with that body; changes: other values for a name, wherever it occurs."""
    headers: dict[str, Any] = {
        "task": f"cotrail.{kind}",
        "id": "i",
        "root_id": "i",
        "argsrepr": "()",
        "kwargsrepr": "{}",
    }
    headers |= {"origin": "o", "ignore_result": True}
    properties = {
        "correlation_id": "i",
        "delivery_mode": 2,
        "delivery_info": {"exchange": "", "routing_key": kind},
        "priority": 0,
        "body_encoding": "base64",
        "delivery_tag": "t",
    }
    whole = {
        "body": body if isinstance(body, str) else b64encode(json.dumps(body).encode()).decode(),
        "content-encoding": "utf-8",
        "content-type": CONTENT_TYPE,
        "headers": headers,
        "properties": properties,
    }
    parts: list[dict[str, Any]] = [whole, headers, properties]
    for name, value in changes.items():
        key = name.replace("content_", "content-")
        next(part for part in parts if key in part)[key] = value
    return json.dumps(whole).encode()


def called(*arguments: object) -> list[object]:
    return [list(arguments), {}, EMBED]


GARBAGE = {
    "nothing": b"",
    "no JSON": b"garbage",
    "binary": bytes(range(256)),
    "an array": b"[]",
    "a number": b"1",
    "null": b"null",
    "an empty object": b"{}",
    "nested too deeply": b"[" * 200_000,
    "nested too deeply where nobody looks": b'{"x":' + b"[" * 200_000,
    "another app's JSON": message(called(1, 0), content_type="application/json"),
    "pickle": message("gASVCgAAAAAAAACMBmhlbGxvlC4=", content_type="application/x-python-serialize"),
    "another encoding": message(called(1, 0), content_encoding="utf-7"),
    "no headers": message(called(1, 0), headers=None),
    "no properties": message(called(1, 0), properties={}),
    "properties of another type": message(called(1, 0), properties=[1]),
    "no delivery tag": message(called(1, 0), delivery_tag=None),
    "a priority of another type": message(called(1, 0), priority="high"),
    "another body encoding": message(called(1, 0), body_encoding="rot13"),
    "an unknown task": message(called(1, 0), task="cotrail.rummage"),
    "a task of Celery's": message(called(1, 0), task="celery.backend_cleanup"),
    "another queue's task": message(called(1, 0), task="cotrail.retrieve"),
    "an id of another type": message(called(1, 0), id=7),
    "an exchange": message(called(1, 0), delivery_info={"exchange": "x", "routing_key": "reason"}),
    "a body that is no base64": message("%%%"),
    "a body that is no JSON": message(b64encode(b"\xff\xfe").decode()),
    "a body that is a number": message(5),
    "a body of another form": message({"args": [1, 0]}),
    "a body that is nested too deeply": message(b64encode(b"[" * 100_000).decode()),
    "no arguments": message(called()),
    "too few arguments": message(called(1)),
    "too many arguments": message(called(1, 0, 0)),
    "arguments of another type": message(called("1", None)),
    "a step that can't be": message(called(10**30, 0)),
    "a negative step": message(called(-1, 0)),
    "an epoch that can't be": message(called(1, 2**31)),
    "a number of a million digits": message(b64encode(b"[[1" + b"0" * 1_000_000 + b",0],{},{}]").decode()),
    "keywords": message([[1, 0], {"x": None}, EMBED]),
    "a callback": message([[1, 0], {}, EMBED | {"callbacks": ["cotrail.read"]}]),
}
"""Messages by what is wrong with them."""

BROADCASTS = {
    "nothing": b"",
    "no JSON": b"garbage",
    "an array": b"[1]",
    "a number": b"1",
    "an empty object": b"{}",
    "nested too deeply": b"[" * 200_000,
    "properties of another type": b'{"properties": [1], "body": "x"}',
    "an unknown encoding": b'{"properties": {"body_encoding": "rot13", "delivery_tag": "t"}, "body": "x"}',
    "a body of garbage": b'{"properties": {"body_encoding": "base64", "delivery_tag": "t"}, "body": "x"}',
    "a body that is a number": message(5),
    "a body that is a text": message("ImEi"),
    "an unknown command": message({"method": "rummage", "arguments": {}, "destination": None}),
    "arguments of another type": message({"method": "ping", "arguments": 5, "destination": 7}),
}
"""Messages for the exchange of Celery's remote control."""
