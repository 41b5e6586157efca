"""Text that PostgreSQL can store."""

import re

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_UNSTORABLE = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\0\ud800-\udfff]")


def storable(value: str) -> str:
    """Replace the characters that PostgreSQL can't store, NUL and lone surrogates, by U+FFFD; pairs are joined."""
    return _UNSTORABLE.sub(_stored, value)


def holds_nul(content: bytes) -> bool:
    """Return whether a text of this JSON has a NUL character."""
    # The substring test comes first because it is much faster than the regular expression, and nearly always false.
    return b"\\u0000" in content and _NUL.search(content) is not None


def _stored(match: re.Match[str]) -> str:
    return match[0].encode("utf-16", "surrogatepass").decode("utf-16") if len(match[0]) > 1 else "\ufffd"


class StorablePieces:
    """Makes a text storable that comes piece by piece, where a character may have its two surrogates in two pieces."""

    def __init__(self) -> None:
        self._half = ""

    def take(self, piece: str) -> str:
        """What of the next piece, and of the one before, is known to be storable."""
        read = self._half + piece
        self._half = read[-1:] if "\ud800" <= read[-1:] <= "\udbff" else ""
        return storable(read.removesuffix(self._half))
