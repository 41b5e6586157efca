"""Operations that are carried out once, however often a client sends the request (`Idempotency-Key`)."""

import hashlib
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from cotrail.errors import InputError
from cotrail.models.records.idempotency import KeyedRequest, MadeBefore, made_before
from cotrail.services.access.actor import acting, actor
from cotrail.services.operations.operation import Operation
from cotrail.services.store import reading

R = TypeVar("R")

LONGEST_KEY = 255


def once(operation: Operation[Any, R], arguments: Mapping[str, Any], key: str | None) -> R:
    """Carry out an operation here; where its request with this key was carried out before, answer what that made.

    An operation that makes nothing (`again` is None) is carried out anyway: doing it twice changes nothing more.
    Raises ConflictError where the key was used for another request.
    """
    again = operation.again
    if key is None or again is None:
        return operation.function(**arguments)
    if not (0 < len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
        raise InputError(f"an Idempotency-Key has 1 to {LONGEST_KEY} printable ASCII characters")
    request = KeyedRequest(key, _digest(operation, arguments))
    with acting(replace(actor(), idempotency=(request.key, request.digest))):
        with reading() as connection:
            made = made_before(connection, request)
        if made is None:
            try:
                return operation.function(**arguments)
            except MadeBefore as before:  # by a request that was under way when this one began
                made = before.made
        return again(made)


def _digest(operation: Operation[Any, Any], arguments: Mapping[str, Any]) -> str:
    asked = msgspec.json.encode([operation.name, arguments], enc_hook=str, order="sorted")
    return hashlib.sha256(asked).hexdigest()
