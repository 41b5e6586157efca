"""Words of a text, as knowledge sources look them up."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from cotrail.common.printable_text import few_marks
from cotrail.common.toml_files import read_toml

MOST_TERM_WORDS = 3
"""The most words of a term."""

LISTS: Mapping[str, str] = read_toml(Path(__file__).with_name("words.toml"))
"""Words with spaces between, by what they are."""

STOP_WORDS = frozenset(LISTS["stop_words"].split())
"""Words that carry no content."""

# Marks within a word belong to it: O'Neil, U.S, AT&T, Jean-Luc.
_WORD = re.compile(r"[^\W_]+(?:(?:\.?'|[.&-])[^\W_]+)*")
_POSSESSIVE = re.compile(r"\.?'s$", re.IGNORECASE)
_APOSTROPHES = str.maketrans("’＇‘", "'''")  # noqa: RUF001 - all are written for apostrophes
_LETTER = re.compile(r"[^\W\d_]")


def words(text: str) -> tuple[str, ...]:
    """The text's words in order, without punctuation and possessive endings: "Harry S. Truman's" has three."""
    # So that ligatures and full-width letters match their plain forms.
    plain = unicodedata.normalize("NFKC", few_marks(text)).translate(_APOSTROPHES)
    return tuple(_POSSESSIVE.sub("", word) for word in _WORD.findall(plain))


def runs(sequence: Sequence[str], longest: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Every n-gram of one to `longest` words with its position; at each position the longest first."""
    for start in range(len(sequence)):
        for end in range(min(start + longest, len(sequence)), start, -1):
            yield start, tuple(sequence[start:end])


def terms(text: str) -> tuple[str, ...]:
    """Dictionary terms: n-grams of up to three words, in lower case, each once, in order.

    None begins or ends with a stop word or with a word without letters.
    """
    lowered = [word.lower() for word in words(text)]
    candidates = (
        run for _, run in runs(lowered, MOST_TERM_WORDS) if _says_something(run[0]) and _says_something(run[-1])
    )
    return tuple(dict.fromkeys(" ".join(run) for run in candidates))


def content(text: str) -> frozenset[str]:
    """The text's words in lower case, including numbers, without stop words."""
    return frozenset(word.lower() for word in words(text)) - STOP_WORDS


def _says_something(word: str) -> bool:
    return word not in STOP_WORDS and _LETTER.search(word) is not None


Bases = Mapping[str, frozenset[str]]
"""The base forms of each term of a text: "married" may be itself and "marry"."""


def differ(one_bases: Bases, other_bases: Bases) -> Callable[[str, str], bool]:
    """A predicate of a base form on each side: True if they come from different words."""
    owners, others = _owners(one_bases), _owners(other_bases)

    def differ(one: str, other: str) -> bool:
        return any(one_bases[a].isdisjoint(other_bases[b]) for a, b in product(owners[one], others[other]))

    return differ


def _owners(bases: Bases) -> dict[str, list[str]]:
    owners: dict[str, list[str]] = {}
    for term, forms in bases.items():
        for form in forms:
            owners.setdefault(form, []).append(term)
    return owners


def capitalized(sentence: str) -> str:
    """The sentence with its first letter in upper case."""
    return sentence[:1].upper() + sentence[1:]
