"""Control tokens of a vocabulary, as texts to look for."""

import re
from collections.abc import Iterable


def control_pattern(controls: Iterable[str]) -> re.Pattern[str]:
    """Finds the texts of any of these control tokens, the longest one that begins at a place; of none, nothing."""
    longest_first = sorted(filter(None, controls), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
