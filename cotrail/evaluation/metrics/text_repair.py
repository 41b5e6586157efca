"""Repair of wrongly decoded text (mojibake), which the released code of IRCoT does before every comparison."""

import re

from cotrail.common.combining_marks import few_marks

_SOUND = re.compile(r"[\t\n\x20-\x25\x27-\x7e]*")


def repaired(text: str) -> str:
    """Apply `ftfy.fix_text`: straight quotes, no HTML entities, no mojibake, and so on.

    Plain ASCII without an ampersand is returned unchanged, which is the same result ten times faster.
    """
    if _SOUND.fullmatch(text):
        return text
    import ftfy  # slow, and seldom needed

    return ftfy.fix_text(few_marks(text))
