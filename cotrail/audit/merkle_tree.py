"""The Merkle tree over a run's questions, as RFC 6962 (section 2.1) defines it.

A leaf is a question's digest, as the text that it is. Its hash is SHA-256(0x00, leaf); that of a node over two subtrees
is SHA-256(0x01, left, right), of their hashes as 32 bytes; without any leaf it is SHA-256 of nothing. The left subtree
is the largest that is full and leaves something to the right. The same tree grows level by level from pairs, where the
last one of an odd number goes up as it is.
"""

from functools import reduce
from hashlib import sha256


class MerkleTree:
    """A tree that leaves are added to; it keeps a hash for each full subtree, of which there are log2(leaves)."""

    def __init__(self) -> None:
        self._full: list[tuple[int, bytes]] = []

    def add(self, leaf: str) -> None:
        """Adds the next leaf."""
        height, node = 0, sha256(b"\0" + leaf.encode()).digest()
        while self._full and self._full[-1][0] == height:
            node = _joined(self._full.pop()[1], node)
            height += 1
        self._full.append((height, node))

    def root(self) -> str:
        """The hash over all leaves so far, in hexadecimal."""
        if not self._full:
            return sha256().hexdigest()
        nodes = [node for _, node in reversed(self._full)]
        return reduce(lambda right, left: _joined(left, right), nodes).hex()


def _joined(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()
