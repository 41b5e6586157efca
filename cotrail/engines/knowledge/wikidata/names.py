"""Normalization of entities' names for looking them up."""

from cotrail.engines.knowledge.words import words


def normalized_name(name: str) -> tuple[str, str]:
    """A name as it is looked up, in lower case and without punctuation, and the same in its own case."""
    spelling = " ".join(words(name))
    return spelling.casefold(), spelling
