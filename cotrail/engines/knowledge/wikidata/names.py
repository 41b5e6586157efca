"""Names of entities as they are looked up."""

from cotrail.engines.knowledge.words import words


def normalized_name(name: str) -> tuple[str, str]:
    """A name as it is looked up, in lower case and without marks, and the same as it is written."""
    written = " ".join(words(name))
    return written.casefold(), written
