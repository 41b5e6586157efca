"""Operations that are carried out once, however often a client sends the request (`Idempotency-Key`)."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from cotrail.errors import InputError
from cotrail.models.records.idempotency import KeyedRequest, MadeBefore, made_before
from cotrail.services.actor import acting, actor
from cotrail.services.operations.operation import Operation
from cotrail.services.store import reading

R = TypeVar("R")

LONGEST_KEY = 255

_MAKES = (201, 202)
"""The statuses of operations that make something."""


def once(
    operation: Operation[Any, R], arguments: Mapping[str, Any], carry_out: Callable[[], Any], key: str | None
) -> Any:
    """Carry out an operation; where its request with this key was carried out before, answer what that made.

    An operation that makes nothing is carried out anyway: doing it twice changes nothing more. One that makes something
    and can't tell later what that was takes no key (InputError). ConflictError where the key was another request's.
    """
    check_key(operation, key)
    replayed = operation.replayed
    if key is None or replayed is None:
        return carry_out()
    if not (0 < len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
        raise InputError(f"an Idempotency-Key has 1 to {LONGEST_KEY} printable ASCII characters")
    request = KeyedRequest(key, _digest(operation, arguments))
    with acting(replace(actor(), idempotency=(request.key, request.digest))):
        with reading() as connection:
            made = made_before(connection, request)
        if made is None:
            try:
                return carry_out()
            except MadeBefore as before:  # by a request that was under way when this one began
                made = before.made
        with reading() as connection:
            return replayed(connection, made)


def check_key(operation: Operation[Any, Any], key: str | None) -> None:
    """Raise InputError where a request has a key whose operation makes something each time that it is asked for."""
    makes = operation.status in _MAKES or (operation.answers == "events" and operation.method == "POST")
    if key is not None and makes and operation.replayed is None:
        raise InputError("this takes no Idempotency-Key, as it can't be asked for twice to the same effect")


def _digest(operation: Operation[Any, Any], arguments: Mapping[str, Any]) -> str:
    asked = msgspec.json.encode([operation.name, arguments], enc_hook=str, order="sorted")
    return hashlib.sha256(asked).hexdigest()
