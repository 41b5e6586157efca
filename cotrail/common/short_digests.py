"""Digests shortened for people. Recorded and compared digests are always complete."""

import re

_DIGEST = re.compile(r"\b([0-9a-f]{12})(?:[0-9a-f]{52}|[0-9a-f]{28})\b")
"""A SHA-256, or Git's SHA-1."""


def shortened(text: str) -> str:
    """Shorten each digest in the text to twelve digits: enough for people to recognise it."""
    return _DIGEST.sub(r"\1", text)
