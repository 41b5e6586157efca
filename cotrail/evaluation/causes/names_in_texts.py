"""Names as they stand whole in texts: West Virginia isn't Virginia, and a page says how its title is called in full."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice

from msgspec import Struct

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.engines.knowledge.words import STOP_WORDS
from cotrail.evaluation.causes.plain_words import UNITS, Reading, american, is_number, listed, plain, read, stands_in

MOST_PLACES, MOST_IN_NAME = 100, 6
"""How often words are looked at in a text, and how many words of a name on either side of them."""

_DIRECTIONS = frozenset(listed("directions"))
_SUFFIXES = frozenset("junior senior ii iii iv vi vii viii ix elder younger fils pere".split())  # noqa: SIM905
TELLING = _DIRECTIONS | _SUFFIXES
"""Words without which a name is another one."""

_BEFORE_CHRIST = frozenset(("bc", "bce"))
_CONNECTORS = frozenset("of de von van der du la al bin".split())  # noqa: SIM905
HARMLESS = frozenset(listed("harmless"))
"""Titles of persons, and kinds of things: a name is the same with them before it."""

_BEHIND_NAMES = frozenset(listed("behind_names"))
INTRODUCING = frozenset(listed("introducing"))
"""Words that begin an answer and are no name."""

_CLAUSE_MARKS = frozenset(",;:!?()[]\n—\u2013|")
_ABBREVIATED = frozenset("jr sr st dr mr mrs ms mt ft prof inc co corp ltd no vs".split())  # noqa: SIM905
_LETTERS = re.compile(r"[^\W\d_]+")
Names = frozenset[tuple[str, ...]]
"""Names by their plain words."""

_Page = Paragraph | GoldParagraph


class Scene(Struct, frozen=True, dict=True):
    """What an answer was given to: the question, and the paragraphs, shown or gold, in which names stand whole."""

    question: str
    pages: tuple[_Page, ...] = ()

    @cached_property
    def asked(self) -> frozenset[str]:
        """The plain words of the question."""
        return frozenset(plain(self.question).split())

    @cached_property
    def small(self) -> frozenset[str]:
        """The words that stand in small letters somewhere, and so are no names."""
        texts = (self.question, *(each.text for each in self.pages))
        return frozenset(word for text in texts for word in _LETTERS.findall(text) if word.islower())

    def has(self, text: str) -> bool:
        """Return whether a paragraph has a plain text."""
        return any(stands_in(text, plain(each.text)) for each in self.pages)

    def names(self, words: Sequence[str]) -> frozenset[tuple[str, ...]]:
        """The names as the paragraphs have them that contain these words."""
        found = set()
        for text in filter(None, (text for page in self.pages for text in (page.title, page.text))):
            if stands_in(words[0], plain(text)):
                reading = read(text)
                for first in islice(places(reading, words), MOST_PLACES):
                    start, end = _name(reading, first, first + len(words), self.small)
                    found.add(tuple(each.plain for each in reading.words[start:end]))
        return frozenset(found)

    def is_called(self, title: str, name: str) -> bool:
        """Return whether a page of that title begins with that name: "Ada Lund", "Ada Marie Lund Berg was"."""
        pages = (each for each in self.pages if plain(each.title.partition(" (")[0]) == title)
        return any(f"{plain(each.text)} ".startswith(f"{name} ") for each in pages)


def places(reading: Reading, words: Sequence[str]) -> Iterator[int]:
    """The numbers of the words at which these begin, in whatever spelling."""
    numbers, length = dict[int, int](), 0
    spelled = [american(word.plain) for word in reading.words]
    for number, word in enumerate(spelled):
        numbers[length] = number
        length += len(word) + 1
    text, wanted, place = f" {' '.join(spelled)} ", f" {' '.join(map(american, words))} ", -1
    while words and (place := text.find(wanted, place + 1)) >= 0:
        yield numbers[place]


def ends_clause(reading: Reading, number: int) -> bool:
    """Return whether a clause ends before the word of that number."""
    gap = reading.gap(number)
    if not number or not _CLAUSE_MARKS.isdisjoint(gap):
        return True
    before = reading.raw(number - 1)
    return " - " in gap or (
        "." in gap and len(before) > 1 and "." not in before and before.casefold() not in _ABBREVIATED
    )


def whole_name(reading: Reading, first: int, end: int, scene: Scene, names: Names) -> tuple[int, int] | None:
    """Where the name begins and ends that words are, or of which they are a part and the same; None where they aren't.

    names: those that contain them, as the paragraphs have them.
    """
    words = tuple(word.plain for word in reading.words)
    span = words[first:end]
    if all(map(is_number, span)):
        return (first, end) if _has_no_other_unit(words, first, end, scene) else None
    start, stop = _name(reading, first, end, scene.small)
    for name in names:
        before = next((n for n in range(len(name)) if name[n : n + len(span)] == span), 0)
        if first >= before and words[first - before : first - before + len(name)] == name:
            start, stop = min(start, first - before), max(stop, first - before + len(name))
    further = frozenset(words[start:first]) - HARMLESS | frozenset(words[end:stop]) - _BEHIND_NAMES
    longer = words[start:stop]
    same = further <= _CONNECTORS | (scene.asked & scene.small) or (longer in names and span not in names)
    return (start, stop) if same or scene.is_called(" ".join(span), " ".join(longer)) else None


def _name(reading: Reading, first: int, end: int, small: frozenset[str]) -> tuple[int, int]:
    """Where the name begins and ends of which these words are a part."""
    start, most = first, max(first - MOST_IN_NAME, 0)
    while start > most:
        if _joins(reading, start) and _is_of_name(reading, start - 1, small):
            start -= 1
        elif start > most + 1 and _is_connected(reading, start - 1) and _is_of_name(reading, start - 2, small):
            start -= 2
        else:
            break
    stop, most = end, min(end + MOST_IN_NAME, len(reading.words))
    while stop < most:
        word = reading.words[stop].plain
        suffix = word in _SUFFIXES and reading.gap(stop).strip() in {"", ",", "the", ", the"}
        is_short = word.isdigit() and len(word) < len("1901")  # "Apollo 11", and no year
        joined = _joins(reading, stop) and (_is_of_name(reading, stop, frozenset()) or is_short)
        if suffix or joined or _is_subtitle(reading, stop):
            stop += 1
        elif (
            stop + 1 < most
            and reading.words[stop - 1].plain not in _SUFFIXES
            and _is_connected(reading, stop)
            and _is_of_name(reading, stop + 1, frozenset())
        ):
            stop += 2
        else:
            break
    return start, stop


def _joins(reading: Reading, number: int) -> bool:
    """Return whether a word may belong to one name with the word before it."""
    return not ends_clause(reading, number) and reading.gap(number).strip() in {"", "-", "."}


def _is_subtitle(reading: Reading, number: int) -> bool:
    begins = reading.is_capital(number) and reading.words[number].plain not in STOP_WORDS
    return begins and reading.gap(number).strip().casefold() in {":", ": the", ": a"}


def _is_connected(reading: Reading, number: int) -> bool:
    gaps = (reading.gap(each).strip().casefold() for each in (number, number + 1))
    return reading.words[number].plain in _CONNECTORS and all(gap in {"", "the"} for gap in gaps)


def _is_of_name(reading: Reading, number: int, small: frozenset[str]) -> bool:
    word = reading.words[number].plain
    if word in _DIRECTIONS:
        return True
    if not reading.is_capital(number) or reading.text.isupper():
        return False
    begins = not number or not frozenset(".!?:\n").isdisjoint(reading.gap(number))
    common = STOP_WORDS | HARMLESS | INTRODUCING | small
    return not begins or not (word in common or word.endswith("ly"))


def _has_no_other_unit(words: Sequence[str], first: int, end: int, scene: Scene) -> bool:
    unit = words[end] if end < len(words) else ""
    if unit not in UNITS:
        return unit not in _BEFORE_CHRIST
    number = " ".join(words[first:end])
    known = {each for each in UNITS if scene.has(f"{number} {each}")} or UNITS & scene.asked
    return not known or unit in known
