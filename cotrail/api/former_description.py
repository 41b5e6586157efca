"""The description in OpenAPI 3.1, for generators of clients: the same routes, with less said of some values.

These read neither events of streams, nor arrays whose items differ by their place, nor contents without a schema.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from cotrail.api.requests import JSON

VERSION = "3.1.1"

ITEM_SCHEMA = "itemSchema"
"""The key of a media type of OpenAPI 3.2 under which stands what one event of a stream is."""

BINARY = {"type": "string", "format": "binary"}
"""Bytes, as generators know them."""


def former(document: Mapping[str, Any]) -> dict[str, Any]:
    """A description in OpenAPI 3.1, from one in 3.2."""
    copy: dict[str, Any] = _with_items_alike(document)
    for content in _contents(copy):
        content |= {media_type: _with_schema(media_type, said) for media_type, said in content.items()}
    return copy | {"openapi": VERSION}


def _with_items_alike(part: Any) -> Any:
    """A copy of a part of a document in which each item of an array may be what any of them is."""
    if isinstance(part, list):
        return [_with_items_alike(each) for each in part]
    if not isinstance(part, Mapping):
        return part
    copy = {key: _with_items_alike(value) for key, value in part.items()}
    if "prefixItems" in copy:
        kinds = copy.pop("prefixItems")
        distinct = [each for place, each in enumerate(kinds) if each not in kinds[:place]]
        copy["items"] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    return copy


def _contents(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What bodies and answers may be, by media type."""
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    said = [*(each["responses"] for each in operations), document["components"]["responses"]]
    bodies = [each["requestBody"] for each in operations if "requestBody" in each]
    answers = [answer for answers in said for answer in answers.values()]
    yield from (each["content"] for each in (*bodies, *answers) if "content" in each)


def _with_schema(media_type: str, said: Mapping[str, Any]) -> dict[str, Any]:
    if ITEM_SCHEMA in said:
        return {"schema": {"type": "string"}}
    return {"schema": {} if media_type == JSON else BINARY, **said}
