"""Asking a model for the titles of pages, and reading what it writes (IRCoT, appendix B)."""

import json

from cotrail.common.storable_text import storable


def title_question(question: str, count: int) -> str:
    """The question that asks for the titles of `count` pages."""
    return (
        f"The question is: '{question}'. Generate titles of {count} Wikipedia pages that have relevant information "
        "to answer this question."
    )


def parse_titles(text: str) -> tuple[str, ...]:
    """The titles in what a model wrote: a JSON list, or else what stands between commas.

    Of what isn't JSON, quotation marks and square brackets are dropped, as in the authors' released code. Empty titles
    are left out, and each title is there once.
    """
    titles = (title.strip() for title in _listed(text))
    return tuple(dict.fromkeys(title for title in titles if title))


def _listed(text: str) -> list[str]:
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        decoded = None
    if isinstance(decoded, list):
        return [storable(title) for title in decoded if isinstance(title, str)]
    return text.translate(str.maketrans("", "", '"[]')).split(",")
