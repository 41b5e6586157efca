"""Sentence boundary detection: the first sentence of a text, complete or still being written.

Sentences are those of the library sentencex, corrected by rules (`_ends`) where it cuts too early, mostly within the
titles of films and songs, and where it takes a name for an abbreviation ("directed by Arthur Penn. Franz Josef died").
A sentence holds at least one letter (the "1." of a list is none). In a text still being written, the first sentence
counts as complete only once the next word is complete and no quotation or bracket is open. Without the complete word,
"directed by Joseph M. N" would end at "M.".

docs/sentences.md reports the error rate of these rules.
"""

import re
from itertools import accumulate

from sentencex import segment

_SPACE = re.compile(r"\s")
_LETTER = re.compile(r"[^\W\d_]")
_WHOLE_WORD = re.compile(r"\s*\S*\w\S*\s")
_PAIRS = ("()", "[]", "“”", "«»")

_NEAR = 40
"""Characters of context on either side that decide whether a sentence ends: longer than any abbreviation."""

LONGEST = 4_000
"""Characters in which an end is searched; a sentence without an end in them extends to the end of its line.

The bound limits the work: models sometimes repeat themselves without a full stop until the token limit."""

_GAP = re.compile(r"\s+")
_FULL_STOP = re.compile(r"[.!?…]\W*$")
_ASKED_OR_EXCLAIMED = re.compile(r"[!?]$")
_TRAILING_OFF = re.compile(r"(!|…|(?<!\.)\.{3})$")
_BEGINNING = re.compile(
    r"[\"“]?(The|An?|He|She|It|They|We|I|You|His|Her|Its|Their|This|That|These|Those|There|In|On|At|As|So|Thus|Then|"
    r"Therefore|Hence|However|But|And|When|While|After|Before|Both|Since)\b"
)
"""A word that often begins a sentence, and rarely the rest of a title."""

_NEVER_LAST = re.compile(r"(?<![\w.])(Mr|Mrs|Ms|Messrs|Mme|Dr|Prof|vs)\.$")
_WORD = re.compile(r"(?<![\w.])[^\W\d_]{2,}\.[\"”)\]]*$")
_BEFORE_NAMES = re.compile(
    r"(?<![\w.])(Br|Bros|Capt|Cmdr|Co|Col|Cpl|Det|Fr|Ft|Gen|Gov|Hon|Jr|Lt|Maj|Mlle|Mt|Op|Ph|Pres|Pvt|Reps?|Rev|Sens?|"
    r"Sgt|Sr|Ste?|al|ca|cf|eg|feat|ft|ie|v)\.$"
)
"""Abbreviations that are followed by a name of the same sentence more often than by a new sentence."""


def first_sentence(text: str) -> str:
    """The first sentence of the text's first line, stripped; empty where that line is blank.

    A text that begins with a line break has no sentence, as in the authors' code, where models stop at line breaks.
    """
    return _head(text.partition("\n")[0].lstrip()).strip()


class SentenceStop:
    """Stop criterion for generation: watches a text while it is written and tells when its first sentence is complete.

    At that moment `first_sentence` of the text so far is, as a rule, what it would be for any continuation.
    """

    def __init__(self) -> None:
        self._text = ""

    def feed(self, piece: str) -> bool:
        """Add the next piece of the text; return True once the first sentence is complete."""
        if "\n" in piece:
            return True
        if len(self._text) > LONGEST:
            return False
        self._text = (self._text + piece).lstrip()
        if not _SPACE.search(piece):
            return False  # Without white space no word was completed, and the answer is the same as before.
        head = _head(self._text)
        return bool(_WHOLE_WORD.match(self._text, len(head))) and _is_closed(head)


def _head(line: str) -> str:
    """The first sentence of a line, with the white space after it."""
    looked_at = line[:LONGEST]
    cuts = set(accumulate(map(len, segment("en", looked_at)))) - {len(looked_at)}
    for end in sorted(cuts.union(gap.end() for gap in _GAP.finditer(looked_at))):
        if _LETTER.search(line, 0, end) and _ends(line, end, cut=end in cuts):
            return line[:end]
    return line


def _ends(line: str, end: int, *, cut: bool) -> bool:
    """Return whether a sentence ends at this position; cut: whether sentencex says so.

    Where sentencex cuts, these aren't ends: "(1) ... (2) ...", after "Mr.", within "Who Dat? is a song" and "Oh Boy!
    (album)"; and within "Author! Author!" and "We Are... Robin" only if the next word usually begins a sentence. Where
    it doesn't cut, a sentence ends after every word that is neither an initial nor a title before names, if a capital
    follows.
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
