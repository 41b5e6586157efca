"""The first sentence of a text, whole or while it is being written.

Sentences are those of the library sentencex, with two rules on top: what holds no letter is no sentence (the "1." of a
list), and a text still being written counts as having a further sentence only once that one's first word is whole and
no quotation or bracket is open in the first. Without the latter, "directed by Joseph M. N" would end at "M.".
"""

import re

from sentencex import segment

_SPACE = re.compile(r"\s")
_LETTER = re.compile(r"[^\W\d_]")
_WHOLE_WORD = re.compile(r"\s*\S*\w\S*\s")
_PAIRS = ("()", "[]", "“”", "«»")


def first_sentence(text: str) -> str:
    """The first sentence of the first line that isn't blank, stripped; empty where there is none."""
    return _head(text.lstrip().split("\n", 1)[0]).strip()


class SentenceStop:
    """Watches a text that is being written and tells when its first sentence is whole.

    Then `first_sentence` of the text so far is, as a rule, that of the text however it would have gone on.
    """

    def __init__(self) -> None:
        self._text = ""

    def feed(self, piece: str) -> bool:
        """Takes the next piece of the text; true as soon as the first sentence is whole."""
        self._text = (self._text + piece).lstrip()
        if "\n" in self._text:
            return True
        if not _SPACE.search(piece):
            return False  # no word became whole
        head = _head(self._text)
        return bool(_WHOLE_WORD.match(self._text, len(head))) and _is_closed(head)


def _head(line: str) -> str:
    head = ""
    for part in segment("en", line):
        head += part
        if _LETTER.search(head):
            break
    return head


def _is_closed(text: str) -> bool:
    return text.count('"') % 2 == 0 and all(text.count(pair[0]) <= text.count(pair[1]) for pair in _PAIRS)
