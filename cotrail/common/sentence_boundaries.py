"""Sentence boundary detection: the first sentence of a text, complete or still being written.

Sentences are those of the library sentencex, corrected by rules (`_ends`) where it cuts too early, mostly within the
titles of films and songs, and where it takes a name for an abbreviation ("directed by Arthur Penn. Franz Josef died").
A sentence holds at least one letter (the "1." of a list is none). In a text still being written, the first sentence
counts as complete only once the next word is complete and no quotation or bracket is open. Without the complete word,
"directed by Joseph M. N" would end at "M.".

docs/sentences.md reports the error rate of these rules.
"""

import re
from collections.abc import Iterator
from heapq import merge
from itertools import accumulate, pairwise

from sentencex import segment

WINDOW_CHARACTERS = 10_000
"""Characters that sentencex is given at once: its time is quadratic in the number of quotation marks.

Texts up to this length are cut exactly as by sentencex alone; in longer ones no sentence has more characters."""

_WIDE_SPACE = re.compile(r"[^\S\x00-\x7f](?=\.)")
"""White space before a full stop at which sentencex panics where a capital letter stands before it."""

_SPACE = re.compile(r"\s")
_LETTER = re.compile(r"[^\W\d_]")
_WHOLE_WORD = re.compile(r"\A\s*+[^\w\s]*+\w\S*+\s")
_STOP_MARK = re.compile("[.!?…]")
_PAIRS = ("()", "[]", "“”", "«»")

_NEAR_CHARACTERS = 40
"""Characters of context on either side that decide whether a sentence ends: longer than any abbreviation."""

LONGEST_SENTENCE = 4_000
"""Characters in which an end is searched; a sentence without an end in them extends to the end of its line.

The bound limits the work: models sometimes repeat themselves without a full stop until the token limit."""

_EXACT_CHARACTERS = 1_000
"""Characters of a text up to which every further word is looked at; few sentences have more."""

_ITEM = re.compile(r"\((\d{1,3}|[a-z]|[ivx]{2,4})\)")
"""The mark of an item, as in "(1) the Academy of Music (2) Mozarteum"; behind one sentencex would end nothing."""

_GAP = re.compile(r"\s+")
_FULL_STOP = re.compile(r"[.!?…][^\w.!?…]*+$")
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

_NAME_WORDS = 4
_BEHIND_NAMES = ("", " ", ",", "'", "\u2019")
"""What may follow a name that is said again; after "J. J." another initial or a name follows."""


def segments(text: str) -> Iterator[str]:
    """The text in sentences, each with the white space behind it; joined they are the text again."""
    start = 0
    while start < len(text):
        window = text[start : start + WINDOW_CHARACTERS]
        ends = segment_ends(window)
        if start + len(window) < len(text) and len(ends) > 1:
            ends.pop()  # What follows the window decides where its last sentence ends.
        yield from (window[one:other] for one, other in pairwise([0, *ends]))
        start += ends[-1]


def segment_ends(text: str) -> list[int]:
    """The places where sentencex ends the sentences of a text, up to its length; none where it is empty."""
    return list(accumulate(map(len, segment("en", _WIDE_SPACE.sub(" ", text)))))


def first_sentence(text: str) -> str:
    """The first sentence of the text's first line, stripped; empty where that line is blank.

    A text that begins with a line break has no sentence, as in the authors' code, where models stop at line breaks.
    """
    return next(sentences(text.partition("\n")[0]), "")


def sentences(text: str) -> Iterator[str]:
    """The sentences of the text, line by line, stripped: of each line the first one, then that of what follows it."""
    for line in text.split("\n"):
        rest, start = line.strip(), 0
        while start < len(rest):
            end = start + _end(rest[start : start + LONGEST_SENTENCE + _NEAR_CHARACTERS], len(rest) - start)
            yield rest[start:end].strip()
            start = end


class SentenceStop:
    """Stop criterion for generation: watches a text while it is written and tells when its first sentence is complete.

    At that moment `first_sentence` of the text so far is, as a rule, what it would be for any continuation.
    """

    def __init__(self) -> None:
        self._text = ""
        self._may_end = False
        self._next_look = 0

    def feed(self, piece: str) -> bool:
        """Add the next piece of the text; return True once the first sentence is complete."""
        if "\n" in piece:
            return True
        if len(self._text) > LONGEST_SENTENCE:
            return False
        self._text = (self._text + piece).lstrip()
        self._may_end = self._may_end or _STOP_MARK.search(piece) is not None
        # Without white space no word was completed, and the answer is the same as before.
        if not self._may_end or not _SPACE.search(piece) or len(self._text) < self._next_look:
            return False
        # So that a text without an end isn't looked at in full at each of its words.
        self._next_look = 17 * len(self._text) // 16 if len(self._text) > _EXACT_CHARACTERS else 0
        end = _end(self._text[: LONGEST_SENTENCE + _NEAR_CHARACTERS], len(self._text))
        return _WHOLE_WORD.match(self._text[end:]) is not None and _is_closed(self._text[:end])


def _end(beginning: str, whole: int) -> int:
    """The end of a line's first sentence, with the white space after it.

    beginning: the line, or as much of it as decides; whole: the length of the line, which is its end if nothing else.
    """
    looked_at = beginning[:LONGEST_SENTENCE]
    letter = _LETTER.search(looked_at)
    if letter is None:
        return whole
    cuts = {*segment_ends(_ITEM.sub(r"X\1X", looked_at))} - {len(looked_at)}
    # One after the other, since most lines have many sentences, of which only the first is wanted.
    ends = merge(sorted(cuts), (gap.end() for gap in _GAP.finditer(looked_at)))
    sentence_ends = (end for end in ends if end > letter.start() and _ends(beginning, end, cut=end in cuts))
    return next(sentence_ends, whole)


def _ends(line: str, end: int, *, cut: bool) -> bool:
    """Return whether a sentence ends at this position; cut: whether sentencex says so.

    Where sentencex cuts, these aren't ends: "(1) ... (2) ...", after "Mr.", within "Who Dat? is a song" and "Oh Boy!
    (album)"; and within "Author! Author!" and "We Are... Robin" only if the next word usually begins a sentence. Where
    it doesn't cut, a sentence ends after every word that is neither an initial nor a title before names, and after a
    name that is said again, if a capital follows.
    """
    before, behind = line[max(0, end - _NEAR_CHARACTERS) : end].rstrip(), line[end : end + _NEAR_CHARACTERS]
    if not _FULL_STOP.search(before) or _NEVER_LAST.search(before):
        return False
    if not cut:
        is_word = _WORD.search(before) and not _BEFORE_NAMES.search(before)
        return (bool(is_word) or _repeats(before, behind)) and behind[:1].isupper() and _is_closed(line[:end])
    if behind[:1].islower() or (behind.startswith("(") and _ASKED_OR_EXCLAIMED.search(before)):
        return False
    return not _TRAILING_OFF.search(before) or bool(_BEGINNING.match(behind))


def _repeats(before: str, behind: str) -> bool:
    """Return whether a text begins with the name that the one before it ends with: "It is Hun Sen. Hun Sen was"."""
    words = before.removesuffix(".").split(" ")[-_NAME_WORDS:]
    names = (" ".join(words[start:]) for start in range(len(words)))
    return any(name and behind.startswith(name) and behind[len(name) :][:1] in _BEHIND_NAMES for name in names)


def _is_closed(text: str) -> bool:
    return text.count('"') % 2 == 0 and all(text.count(pair[0]) <= text.count(pair[1]) for pair in _PAIRS)
