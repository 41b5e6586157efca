"""Words of a text, marked."""

import re
from collections.abc import Collection
from typing import Any

_WORD = re.compile(r"(\w+(?:['’＇]\w+)*)")  # noqa: RUF001 - all three are written for possessives
"""A word, as those are that searches tell (`cotrail.engines.retrieval.matched_words`)."""


def marked(text: str, words: Collection[str]) -> Any:
    """The text as HTML, with these words marked."""
    from markupsafe import Markup, escape

    if not words:
        return text
    pieces = (Markup("<mark>{}</mark>").format(each) if each in words else escape(each) for each in _WORD.split(text))
    return Markup("").join(pieces)
