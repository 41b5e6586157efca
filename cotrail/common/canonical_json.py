"""Canonical JSON: equal values give equal bytes."""

import re

import msgspec


def canonical(value: object) -> bytes:
    """Encode a value as JSON with sorted keys, no spaces, UTF-8."""
    return msgspec.json.encode(value, order="sorted")


# Digests shortened for people. Recorded and compared digests are always complete.

_DIGEST = re.compile(r"\b([0-9a-f]{12})(?:[0-9a-f]{52}|[0-9a-f]{28})\b")
"""A SHA-256, or Git's SHA-1."""


def shortened(text: str) -> str:
    """Shorten each digest in the text to twelve digits: enough for people to recognise it."""
    return _DIGEST.sub(r"\1", text)
