"""The first sentence of a text, whole or while it is being written.

Sentences are those of the library sentencex, with rules on top (`_ends`) for what it cuts too early, mostly within the
titles of films and songs, and for what it takes for an abbreviation ("directed by Arthur Penn. Franz Josef died").
What holds no letter is no sentence (the "1." of a list). A text still being written counts as having a further sentence
only once that one's first word is whole and no quotation or bracket is open in the first. Without the latter,
"directed by Joseph M. N" would end at "M.".

docs/sentences.md says how often these rules are wrong.
"""

import re
from itertools import accumulate

from sentencex import segment

_SPACE = re.compile(r"\s")
_LETTER = re.compile(r"[^\W\d_]")
_WHOLE_WORD = re.compile(r"\s*\S*\w\S*\s")
_PAIRS = ("()", "[]", "“”", "«»")

_NEAR = 40
"""How many characters before and behind its end tell whether a sentence ends: more than an abbreviation has."""

LONGEST = 4_000
"""In so many characters an end is looked for; what goes on for longer without one goes on to the line's end."""

_GAP = re.compile(r"\s+")
_FULL_STOP = re.compile(r"[.!?…]\W*$")
_ASKED_OR_EXCLAIMED = re.compile(r"[!?]$")
_TRAILING_OFF = re.compile(r"(!|…|(?<!\.)\.{3})$")
_BEGINNING = re.compile(
    r"[\"“]?(The|An?|He|She|It|They|We|I|You|His|Her|Its|Their|This|That|These|Those|There|In|On|At|As|So|Thus|Then|"
    r"Therefore|Hence|However|But|And|When|While|After|Before|Both|Since)\b"
)
"""A word that begins sentences, and seldom the rest of a title."""

_NEVER_LAST = re.compile(r"(?<![\w.])(Mr|Mrs|Ms|Messrs|Mme|Dr|Prof|vs)\.$")
_WORD = re.compile(r"(?<![\w.])[^\W\d_]{2,}\.[\"”)\]]*$")
_BEFORE_NAMES = re.compile(
    r"(?<![\w.])(Br|Bros|Capt|Cmdr|Co|Col|Cpl|Det|Fr|Ft|Gen|Gov|Hon|Jr|Lt|Maj|Mlle|Mt|Op|Ph|Pres|Pvt|Reps?|Rev|Sens?|"
    r"Sgt|Sr|Ste?|al|ca|cf|eg|feat|ft|ie|v)\.$"
)
"""Abbreviations that a capitalised word follows in one sentence, more often than another sentence does."""


def first_sentence(text: str) -> str:
    """The first sentence of the text's first line, stripped; empty where that line is blank.

    A text that begins with a line break is over before it began, as in the authors' code, which has models stop there.
    """
    return _head(text.partition("\n")[0].lstrip()).strip()


class SentenceStop:
    """Watches a text that is being written and tells when its first sentence is whole.

    Then `first_sentence` of the text so far is, as a rule, that of the text however it would have gone on.
    """

    def __init__(self) -> None:
        self._text = ""

    def feed(self, piece: str) -> bool:
        """Takes the next piece of the text; true as soon as the first sentence is whole."""
        if "\n" in piece:
            return True
        if len(self._text) > LONGEST:
            return False
        self._text = (self._text + piece).lstrip()
        if not _SPACE.search(piece):
            return False  # no word became whole
        head = _head(self._text)
        return bool(_WHOLE_WORD.match(self._text, len(head))) and _is_closed(head)


def _head(line: str) -> str:
    """The first sentence of a line, with the white space behind it."""
    looked_at = line[:LONGEST]
    cuts = set(accumulate(map(len, segment("en", looked_at)))) - {len(looked_at)}
    for end in sorted(cuts.union(gap.end() for gap in _GAP.finditer(looked_at))):
        if _LETTER.search(line, 0, end) and _ends(line, end, cut=end in cuts):
            return line[:end]
    return line


def _ends(line: str, end: int, *, cut: bool) -> bool:
    """Whether a sentence of the line ends there; `cut` is what sentencex says.

    Where it cuts: not before "(1) ... (2) ...", nor behind "Mr.", nor in "Who Dat? is a song" and "Oh Boy! (album)",
    and in "Author! Author!" and "We Are... Robin" only where what follows begins sentences. Where it doesn't: behind
    every word that isn't an initial and doesn't come before names, if a capital follows.
    """
    before, behind = line[max(0, end - _NEAR) : end].rstrip(), line[end : end + _NEAR]
    if not _FULL_STOP.search(before) or _NEVER_LAST.search(before):
        return False
    if not cut:
        is_word = _WORD.search(before) and not _BEFORE_NAMES.search(before)
        return bool(is_word) and behind[:1].isupper() and _is_closed(line[:end])
    if behind[:1].islower() or (behind.startswith("(") and _ASKED_OR_EXCLAIMED.search(before)):
        return False
    return not _TRAILING_OFF.search(before) or bool(_BEGINNING.match(behind))


def _is_closed(text: str) -> bool:
    return text.count('"') % 2 == 0 and all(text.count(pair[0]) <= text.count(pair[1]) for pair in _PAIRS)
