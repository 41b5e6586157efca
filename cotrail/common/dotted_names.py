"""Nested settings by dotted names, as `retrieval.count`."""

from collections.abc import Iterator, Mapping
from typing import Any


def dotted(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values that aren't dictionaries, with their dotted names."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from dotted(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The tree of values that have dotted names."""
    tree: dict[str, Any] = {}
    for name, value in values.items():
        *above, last = name.split(".")
        place = tree
        for each in above:
            place = place.setdefault(each, {})
        place[last] = value
    return tree
