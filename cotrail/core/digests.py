"""Digests of lists, as the record has them: what a search found, and sets of rows."""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256

from cotrail.core.paragraphs import Hit


def digest_of(texts: Sequence[object]) -> str:
    """The digest of an array."""
    return sha256(json.dumps(texts, ensure_ascii=False).encode()).hexdigest()


def digest_of_hits(hits: Iterable[Hit]) -> str:
    """The digest of what a search found, which stands in its result: rank, paragraph, its id in the corpus, score."""
    return digest_of_found((hit.rank, hit.paragraph.digest, hit.paragraph.id, float(hit.score)) for hit in hits)


def digest_of_found(found: Iterable[tuple[int, str, str, float]]) -> str:
    """The same, of each hit's rank, digest, id and score."""
    return digest_of([list(each) for each in found])
