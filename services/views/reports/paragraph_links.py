"""Links to the paragraphs at the end of a run's page."""

SNIPPET = 190
"""Characters of a paragraph beside a sentence; each whole paragraph is at the end of the page, once."""


def anchor_of(digest: str) -> str:
    """The id of a paragraph on the page."""
    return f"p-{digest}"
