"""Merkle tree over the digests of a run's questions, as RFC 6962 (section 2.1) defines it.

A leaf is a question's digest, as hexadecimal text. Its hash is SHA-256(0x00, leaf); the hash of a node is
SHA-256(0x01, left, right) over the 32-byte hashes of its subtrees; the root of no leaves is SHA-256 of nothing. The two
prefixes keep a node from being passed off as a leaf. The left subtree is the largest full one that leaves something to
the right. Equivalently, each level pairs the nodes below it, and an odd last node moves up unchanged.
"""

from functools import reduce
from hashlib import sha256


class MerkleTree:
    """Incremental tree: keeps only the hash of each full subtree, about log2(leaves) of them."""

    def __init__(self) -> None:
        self._full: list[tuple[int, bytes]] = []

    def add(self, leaf: str) -> None:
        """Adds the next leaf."""
        # As in a binary counter: a new full subtree merges with its left neighbour as long as both are equally high.
        height, node = 0, sha256(b"\0" + leaf.encode()).digest()
        while self._full and self._full[-1][0] == height:
            node = _joined(self._full.pop()[1], node)
            height += 1
        self._full.append((height, node))

    def root(self) -> str:
        """The root over all leaves so far, in hexadecimal."""
        if not self._full:
            return sha256().hexdigest()
        nodes = [node for _, node in reversed(self._full)]
        return reduce(lambda right, left: _joined(left, right), nodes).hex()


def _joined(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()
