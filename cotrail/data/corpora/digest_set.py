"""Memory-efficient set of digests, for many millions of them."""

DIGEST_BYTES = 16
"""Length of a digest: among ten million digests, the probability that two are equal by chance is about 10^-25."""

_HEAD_BYTES = 2


class DigestSet:
    """Digests of 16 bytes, at about 17 bytes of memory each; a `set` of bytes objects takes about 100.

    The first two bytes choose a bucket, which is one bytearray of the digests' remaining bytes in a row.
    """

    def __init__(self) -> None:
        self._tails: dict[bytes, bytearray] = {}

    def add(self, digest: bytes) -> bool:
        """Add a digest; return whether it is new."""
        if len(digest) != DIGEST_BYTES:
            raise ValueError(f"a digest has {DIGEST_BYTES} bytes, not {len(digest)}")
        tails = self._tails.setdefault(digest[:_HEAD_BYTES], bytearray())
        if _holds(tails, digest[_HEAD_BYTES:]):
            return False
        tails += digest[_HEAD_BYTES:]
        return True

    def __contains__(self, digest: bytes) -> bool:
        return _holds(self._tails.get(digest[:_HEAD_BYTES], bytearray()), digest[_HEAD_BYTES:])


def _holds(tails: bytearray, tail: bytes) -> bool:
    place = tails.find(tail)
    while place % len(tail) and place >= 0:  # A match across two neighbours is none; look further.
        place = tails.find(tail, place + 1)
    return place >= 0
