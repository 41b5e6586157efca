"""Text that every part of the system can hold."""

import re

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(value: str) -> str:
    """The same text without what PostgreSQL can't hold: NUL and lone surrogates become U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", value)
