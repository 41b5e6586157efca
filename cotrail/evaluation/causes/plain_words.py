"""Words of texts in one plain form, in which answers, titles and sentences are compared.

Beyond what the scripts of datasets do (`cotrail.common.answer_normalization`), accents, the forms of numbers and of
dates, and the names of units are alike: "21 km", "twenty-one kilometres" and "21.0 kilometers" are equal, and so are
"1901-03-04" and "4 March 1901".
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from cotrail.common.combining_marks import few_marks
from cotrail.engines.knowledge.words import STOP_WORDS

_MOST_CACHED = 2**12
"""Size of the cache of plain texts: the questions of a run find many paragraphs again, and each is looked at often."""

_ISO_DATE = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_WITHIN = re.compile(r"(?<!\d)[.'’]|[.'’](?!\d)")  # noqa: RUF001 - written for an apostrophe
_WORD = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+")
_TOKEN = re.compile(r"[^\W_]+")
_SYMBOLS = str.maketrans({"&": " and ", "%": " percent ", "$": " dollar ", "€": " euro ", "£": " pound "})

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES: Mapping[str, int] = {"hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9}
_MOST_DIGITS = 15
"""Longer numbers aren't multiplied."""

_NUMBERS: Mapping[str, int] = {
    **{word: value for value, word in enumerate(_SMALL)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
}
_UNITS: Mapping[str, tuple[str, ...]] = {
    "kilometre": ("km", "kms", "kilometer", "kilometers", "kilometres"),
    "metre": ("m", "meter", "meters", "metres"),
    "mile": ("mi", "miles"),
    "foot": ("ft", "feet"),
    "kilogram": ("kg", "kgs", "kilograms", "kilogramme", "kilogrammes"),
    "percent": ("percentage",),
    "dollar": ("dollars", "usd"),
    "euro": ("euros", "eur"),
    "pound": ("pounds", "gbp"),
    "year": ("years",),
    "day": ("days",),
}
_ALIKE: Mapping[str, str] = {
    **{month[:3]: month for month in _MONTHS},
    "sept": "september",
    **{form: unit for unit, forms in _UNITS.items() for form in forms},
}
_ARTICLES = frozenset(("a", "an", "the"))
_ORDINALS = frozenset(("st", "nd", "rd", "th"))


@lru_cache(maxsize=_MOST_CACHED)
def plain(text: str) -> str:
    """The text's words in their plain form, with one space between."""
    folded = "".join(each for each in unicodedata.normalize("NFKD", few_marks(text)) if not unicodedata.combining(each))
    dated = _ISO_DATE.sub(_written_date, folded.casefold().translate(_SYMBOLS))
    return " ".join(_read(_WORD.findall(_WITHIN.sub("", _THOUSANDS.sub("", dated)))))


def stands_in(part: str, whole: str) -> bool:
    """Return whether all words of a plain text stand in another one, side by side; False for a text without words."""
    return bool(part) and f" {part} " in f" {whole} "


def content(text: str) -> frozenset[str]:
    """The plain words that carry content."""
    return frozenset(plain(text).split()) - STOP_WORDS


def is_number(word: str) -> bool:
    """Return whether a plain word is a number or a month."""
    return word[0].isdigit() or word in _MONTHS


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


def _written_date(match: re.Match[str]) -> str:
    year, month, day = match.groups()
    return f"{day} {_MONTHS[int(month) - 1]} {year}" if 1 <= int(month) <= len(_MONTHS) else match[0]


def _read(words: Iterable[str]) -> list[str]:
    """The words without articles, numbers as digits, months and units in full."""
    read: list[str] = []
    before = ""
    for word in words:
        if word in _NUMBERS:
            _add_number(read, _NUMBERS[word], after_tens=before in _TENS)
        elif word in _SCALES and read and _is_short_number(read[-1]):
            read[-1] = _digits(str(float(read[-1]) * _SCALES[word]))
        elif word[0].isdigit():
            read.append(_digits(word))
        elif not (word in _ARTICLES or (word in _ORDINALS and before[:1].isdigit())):
            read.append(_ALIKE.get(word, word))
        before = word
    return read


def _add_number(read: list[str], value: int, *, after_tens: bool) -> None:
    if after_tens and 0 < value < len(_SMALL) // 2:
        read[-1] = str(int(read[-1]) + value)
    else:
        read.append(str(value))


def _is_short_number(word: str) -> bool:
    return word[0].isdigit() and len(word) <= _MOST_DIGITS


def _digits(number: str) -> str:
    """A number without zeros that say nothing."""
    whole, _, part = number.partition(".")
    part = part.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{part}" if part else "")
