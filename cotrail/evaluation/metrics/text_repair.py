"""Mending of text that was decoded wrongly, which the released code of IRCoT does before it compares anything."""

import re

import ftfy

_SOUND = re.compile(r"[\t\n\x20-\x25\x27-\x7e]*")


def repaired(text: str) -> str:
    """The text as `ftfy.fix_text` leaves it: straight quotes, no HTML entities, no mojibake, and so on.

    Plain ASCII without an ampersand is left as it is, which says the same ten times faster.
    """
    return text if _SOUND.fullmatch(text) else ftfy.fix_text(text)
