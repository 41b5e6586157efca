"""Words of texts in one plain form, in which answers, titles and sentences are compared.

Beyond what the scripts of datasets do (`cotrail.common.answer_normalization`), accents, the forms of numbers and of
dates, the names of units and usual abbreviations are alike: "21 km", "twenty-one
kilometres" and "21.0 kilometers" are equal, and so are "1901-03-04" and "4 March 1901".
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from cotrail.common.printable_text import few_marks
from cotrail.common.toml_files import read_toml
from cotrail.engines.knowledge.words import STOP_WORDS

_MOST_CACHED = 2**12
"""Size of the cache of plain texts: the questions of a run find many paragraphs again, and each is looked at often."""

_MOST_READ = 2**7
"""The same of texts with the places of their words, which take much more room."""

_WORD = re.compile(
    r"(?P<date>(?<!\d)\d{4}-\d\d-\d\d(?!\d))|(?P<number>\d+(?:,\d{3}(?!\d))*(?:\.\d+)?(?:s(?![^\W_]))?)|[&%$€£]"
    r"|[^\W\d_]+(?:['’][^\W\d_]+|\.[^\W\d_](?![^\W\d_]))*"  # noqa: RUF001 - written for an apostrophe
)
"""A date or a number, a decade ("1990s") among them, a symbol, or letters: "U.S." and "O'Neil" are words."""

_TOKEN = re.compile(r"[^\W_]+")
_WITHIN = str.maketrans("", "", ".'’")  # noqa: RUF001
_SYMBOLS: Mapping[str, str] = {"&": "and", "%": "percent", "$": "dollar", "€": "euro", "£": "pound"}

LISTS: Mapping[str, Any] = read_toml(Path(__file__).with_name("word_lists.toml"))


def listed(name: str) -> tuple[str, ...]:
    """The words of a list of `word_lists.toml`, in their order."""
    return tuple(LISTS[name].split())


MONTHS = listed("months")
_SMALL = listed("small_numbers")
_TENS = listed("tens")
_SCALES: Mapping[str, int] = {"hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9}
_MOST_DIGITS = 15
"""Longer numbers aren't multiplied."""

_NUMBERS: Mapping[str, int] = {
    **{word: value for value, word in enumerate(_SMALL)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
}
_WRITTEN: Mapping[str, list[str]] = read_toml(Path(__file__).with_name("written_forms.toml"))
UNITS = frozenset(listed("units"))
"""Units in their plain form."""

_ALIKE: Mapping[str, str] = {
    **{month[:3]: month for month in MONTHS},
    "sept": "september",
    **{form: word for word, forms in _WRITTEN.items() for form in (word, *forms)},
}
_ENDINGS: Sequence[tuple[str, str]] = LISTS["british_endings"]
"""How British words end, and American ones."""

_LEAST_STEM = 3
"""Letters before such an ending: "our" and "hour" stay."""
_ARTICLES = frozenset(("a", "an", "the"))
_ORDINALS = frozenset(("st", "nd", "rd", "th"))


class Word(NamedTuple):
    """A word in its plain form, and where it is in the text that was read."""

    plain: str
    start: int
    end: int


class Reading(NamedTuple):
    """A text without accents, and its words. Articles are none, and the words of one number are one."""

    text: str
    words: tuple[Word, ...]

    def is_capital(self, number: int) -> bool:
        """Return whether the word of that number begins with a capital letter."""
        return self.text[self.words[number].start].isupper()

    def raw(self, number: int) -> str:
        """The word of that number as it is written."""
        return self.text[self.words[number].start : self.words[number].end]

    def gap(self, number: int) -> str:
        """What stands between the word of that number and the one before it; before the first one, a full stop."""
        return self.text[self.words[number - 1].end : self.words[number].start] if number else "."


@lru_cache(maxsize=_MOST_READ)
def read(text: str) -> Reading:
    """The text's words in their plain form, with their places."""
    folded = text
    if not text.isascii():
        letters = unicodedata.normalize("NFKD", few_marks(text))
        folded = "".join(each for each in letters if not unicodedata.combining(each))
    return Reading(folded, tuple(_read(_WORD.finditer(folded))))


@lru_cache(maxsize=_MOST_CACHED)
def plain(text: str) -> str:
    """The text's words in their plain form, with one space between."""
    return " ".join(word.plain for word in read(text).words)


def stands_in(part: str, whole: str) -> bool:
    """Return whether all words of a plain text stand in another one, side by side; False for a text without words."""
    return bool(part) and f" {part} " in f" {whole} "


def content(text: str) -> frozenset[str]:
    """The plain words that carry content."""
    return frozenset(plain(text).split()) - STOP_WORDS


def is_number(word: str) -> bool:
    """Return whether a plain word is a number or a month."""
    return word[0].isdigit() or word in MONTHS


def names_and_numbers(text: str) -> frozenset[str]:
    """The plain words that are numbers, or are capitalised within a sentence, as names are."""
    return frozenset(plain(" ".join(_marked(text))).split()) - STOP_WORDS


def _marked(text: str) -> Iterator[str]:
    """The words with a digit, and those that begin with a capital letter and begin no sentence."""
    end = 0
    for match in _TOKEN.finditer(text):
        word, begins = match[0], not end or any(mark in text[end : match.start()] for mark in ".!?:\n")
        if any(each.isdigit() for each in word) or (word[0].isupper() and not begins):
            yield word
        end = match.end()


def american(word: str) -> str:
    """A plain word in American spelling."""
    for british, american in _ENDINGS:
        if word.endswith(british) and len(word) >= len(british) + _LEAST_STEM:
            return word.removesuffix(british) + american
    return word


def _read(matches: Iterable[re.Match[str]]) -> list[Word]:
    """The words without articles, numbers as digits, months and units in full."""
    read: list[Word] = []
    before = ""
    for match in matches:
        start, end = match.span()
        word = (
            match[0].casefold() if match.lastgroup else _SYMBOLS.get(match[0], match[0].casefold().translate(_WITHIN))
        )
        if match.lastgroup == "date":
            read += [Word(each, start, end) for each in _written_date(word)]
        elif match.lastgroup == "number":
            read.append(Word(_digits(word.replace(",", "")), start, end))
        elif word in _NUMBERS:
            if before in _TENS and 0 < _NUMBERS[word] < len(_SMALL) // 2:
                read[-1] = Word(str(int(read[-1].plain) + _NUMBERS[word]), read[-1].start, end)
            else:
                read.append(Word(str(_NUMBERS[word]), start, end))
        elif word in _SCALES and read and _is_short_number(read[-1].plain):
            read[-1] = Word(_digits(str(float(read[-1].plain) * _SCALES[word])), read[-1].start, end)
        elif not (word in _ARTICLES or (word in _ORDINALS and before[:1].isdigit())):
            read.append(Word(_ALIKE.get(word, word), start, end))
        before = word
    return read


def _written_date(date: str) -> list[str]:
    year, month, day = date.split("-")
    if 1 <= int(month) <= len(MONTHS):
        return [_digits(day), MONTHS[int(month) - 1], _digits(year)]
    return [_digits(year), _digits(month), _digits(day)]


def _is_short_number(word: str) -> bool:
    return word[0].isdigit() and word[-1].isdigit() and len(word) <= _MOST_DIGITS


def _digits(number: str) -> str:
    """A number without zeros that say nothing."""
    whole, _, part = number.partition(".")
    part = part.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{part}" if part else "")
