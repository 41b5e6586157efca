"""A set of digests that holds many millions in little memory."""

BYTES = 16
"""How long a digest is. Among ten million of them two are the same by chance once in 10^24 corpora."""

_HEAD = 2


class DigestSet:
    """Digests of 16 bytes, about 17 bytes of memory for each where there are millions."""

    def __init__(self) -> None:
        self._tails: dict[bytes, bytearray] = {}

    def add(self, digest: bytes) -> bool:
        """Puts a digest in; whether it wasn't there before."""
        if len(digest) != BYTES:
            raise ValueError(f"a digest has {BYTES} bytes, not {len(digest)}")
        tails = self._tails.setdefault(digest[:_HEAD], bytearray())
        if _holds(tails, digest[_HEAD:]):
            return False
        tails += digest[_HEAD:]
        return True

    def __contains__(self, digest: bytes) -> bool:
        return _holds(self._tails.get(digest[:_HEAD], bytearray()), digest[_HEAD:])


def _holds(tails: bytearray, tail: bytes) -> bool:
    place = tails.find(tail)
    while place % len(tail) and place >= 0:  # it begins inside another one
        place = tails.find(tail, place + 1)
    return place >= 0
