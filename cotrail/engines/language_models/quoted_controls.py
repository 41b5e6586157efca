"""What reads like a control token in a prompt: a system's own words name it, and paragraphs only quote it."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from cotrail.core.prompts import Text, Turn, Written
from cotrail.engines.language_models.segments import Segment

Span = tuple[int, int]
"""Where a part of a text begins and ends."""


def spans_of(controls: re.Pattern[str]) -> Callable[[str], list[Span]]:
    """Where a text reads like a control token."""
    return lambda text: [match.span() for match in controls.finditer(text)]


def quoted_controls(turns: Sequence[Turn], find: Callable[[str], Iterable[Span]]) -> Iterator[list[Span]]:
    """Where each turn's text reads like a control token and holds none, since it only quotes it.

    The system's own words may hold control tokens (`Text`, but not in a tool's answer), and so may what the model wrote
    (`Written`), unless it may have copied them: from what is quoted before.
    find: where a text reads like a control token.
    """
    quoted: set[str] = set()
    for turn in turns:
        text, spans = turn.text, list[Span]()
        for start, end in find(text):
            kinds = _kinds(turn, start, end)
            if not kinds <= _OWN or (Written in kinds and text[start:end] in quoted):
                quoted.add(text[start:end])
                spans.append((start, end))
        yield spans


def divided(turn: Turn, controls: re.Pattern[str]) -> list[Segment]:
    """The segments of plain text."""
    (spans,) = quoted_controls((turn,), spans_of(controls))
    text, place, segments = turn.text, 0, list[Segment]()
    for start, end in spans:
        segments += [Segment(text[place:start]), Segment(text[start:end], plain=True)]
        place = end
    return [*segments, Segment(text[place:])]


def named_controls(turns: Iterable[Turn], stop: Iterable[str], controls: re.Pattern[str]) -> set[str]:
    """The control tokens that a system's own words name, or its stop strings, and that the model may write for it."""
    own = (piece.text for turn in turns for piece in turn.pieces if isinstance(piece, Text) and turn.role != "tool")
    return {control for text in (*own, *stop) for control in controls.findall(text)}


_OWN = frozenset({Text, Written})


def _kinds(turn: Turn, start: int, end: int) -> set[type]:
    """The kinds of the pieces that a part of a turn's text is from."""
    # In small letters a text may have another length.
    if turn.role == "tool" or turn.lower:
        return {Turn}
    kinds, place = set[type](), 0
    for piece in turn.pieces:
        begin, place = place, place + len(piece.text)
        if begin < end and start < place:
            kinds.add(type(piece))
    return kinds
