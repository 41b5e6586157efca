"""Bounded runs of combining marks: Unicode normalization takes time quadratic in their number."""

import re
import unicodedata

MOST_MARKS = 30
"""The most marks in a row, as in Unicode's stream-safe text format (UAX #15); no language has ten."""

_RUN = re.compile(rf"[^\s\x00-\u02ff]{{{MOST_MARKS + 1},}}")
_VOICED = "\uff9e\uff9f"
"""Letters of half width that normalization turns into marks."""


def few_marks(text: str) -> str:
    """The text without those combining marks that stand behind `MOST_MARKS` others."""
    return text if text.isascii() else _RUN.sub(lambda run: _shortened(run[0]), text)


def _shortened(run: str) -> str:
    kept, marks = [], 0
    for character in run:
        is_mark = unicodedata.category(character).startswith("M") or character in _VOICED
        marks = marks + 1 if is_mark else 0
        if marks <= MOST_MARKS:
            kept.append(character)
    return "".join(kept)
