"""Control tokens in a prompt: a system's own words name them, and what reads like one in a paragraph is only quoted."""

import re
from collections.abc import Iterable

from cotrail.core.prompts import Text, Turn, quoted_spans
from cotrail.engines.language_models.thinking import Segment, spans_of


def divided(turn: Turn, controls: re.Pattern[str]) -> list[Segment]:
    """The segments of plain text."""
    (spans,) = quoted_spans((turn,), spans_of(controls))
    text, place, segments = turn.text, 0, list[Segment]()
    for start, end in spans:
        segments += [Segment(text[place:start]), Segment(text[start:end], plain=True)]
        place = end
    return [*segments, Segment(text[place:])]


def named_controls(turns: Iterable[Turn], stop: Iterable[str], controls: re.Pattern[str]) -> set[str]:
    """The control tokens that a system's own words name, or its stop strings, and that the model may write for it."""
    own = (piece.text for turn in turns for piece in turn.pieces if isinstance(piece, Text) and turn.role != "tool")
    return {control for text in (*own, *stop) for control in controls.findall(text)}
