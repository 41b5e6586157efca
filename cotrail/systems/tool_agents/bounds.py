"""The most steps that loops of tool calls take."""

from cotrail.systems.parts.most import Most
from cotrail.systems.parts.searching import SearchSettings
from cotrail.systems.tool_agents.loop import MOST_CALLS

OPENING_STEPS = 2
"""Titles that are opened for one call: the one that is named, and the one that is most like it."""


def most_looped(turns: int, max_tokens: int, search: SearchSettings) -> tuple[Most, ...]:
    """The messages of a loop first, then the steps of its tools."""
    words = turns * (max_tokens + MOST_CALLS * search.most_words)
    return (
        Most(kind="reason", times=turns, output=max_tokens, words=words),
        Most(kind="retrieve", times=turns * MOST_CALLS, in_turn=turns),
        Most(kind="open", times=OPENING_STEPS * turns * MOST_CALLS, in_turn=OPENING_STEPS * turns),
    )
