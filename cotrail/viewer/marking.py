"""Words of a text, marked."""

import re
from collections.abc import Collection
from itertools import islice
from typing import Any

WORD = re.compile(r"(\w+(?:['’＇]\w+)*)")  # noqa: RUF001 - all three are written for possessives
"""A word, as those are that searches tell (`cotrail.engines.retrieval.analysis`)."""


MOST_MARKS = 12
"""How often words are marked in a text: pages stay light."""


def marked(text: str, words: Collection[str]) -> Any:
    """The text as HTML, with these words marked where they come first."""
    from markupsafe import Markup, escape

    if not words:
        return text
    pieces = WORD.split(text)
    places = set(islice((place for place, each in enumerate(pieces) if each in words), MOST_MARKS))
    marking = Markup("<mark>{}</mark>").format
    return Markup("").join(marking(each) if place in places else escape(each) for place, each in enumerate(pieces))
