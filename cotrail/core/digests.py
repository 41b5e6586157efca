"""Digests of lists, as the record has them: results of searches, and sets of rows."""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256


def digest_of(texts: Sequence[object]) -> str:
    """The digest of an array: the SHA-256 of its JSON."""
    return sha256(json.dumps(texts, ensure_ascii=False).encode()).hexdigest()


def digest_of_found(hits: Iterable[tuple[int, str, str, float]]) -> str:
    """The digest of a search's result, of which each hit's rank, digest, id in the corpus and score are given."""
    return digest_of([list(each) for each in hits])
