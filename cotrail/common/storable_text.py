"""Text that PostgreSQL can store."""

import re

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(value: str) -> str:
    """Replace the characters that PostgreSQL can't store, NUL and lone surrogates, by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", value)
