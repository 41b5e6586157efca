"""Text analysis of titles, texts and queries: like Elasticsearch's `english` analyzer, from tantivy's parts."""

import re

import tantivy

_SINGLE = r"\p{Han}\p{Hiragana}"
_LETTER = rf"[\p{{L}}--[{_SINGLE}]]"

TERM = rf"[{_SINGLE}]|(?:{_LETTER}(?:['‘.:·]{_LETTER})*|\p{{N}}(?:['.,;]\p{{N}})*|\p{{M}}|_)+"  # noqa: RUF001
"""The pattern of a word.

As in Unicode's annex 29, some marks join letters and others digits (`o'neil`, `u.s.a`, `15,140`), none joins a letter
and a digit (`no` and `1` in `No.1`), and each Chinese character or hiragana is a word.
"""

STOP_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such "
    "that the their then there these they this to was will with"
)
"""Lucene's English stop words."""

ANALYZER = f"2: {TERM}, lower-cased, without 's and Lucene's stop words, stemmed as English"
"""The analyzer's name, which indexes record: an index with another one isn't searched."""

_APOSTROPHES = str.maketrans("’＇", "''")  # noqa: RUF001 - both are written for possessives


def english() -> tantivy.TextAnalyzer:
    """The analyzer; its input has to be what `plain` returns."""
    # The stemmer removes the possessive, but only after the stop words, so that `it's` has to be a stop word too.
    stop_words = [form for word in STOP_WORDS.split() for form in (word, f"{word}'s")]
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(TERM))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.custom_stopword(stop_words))
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


def plain(text: str) -> str:
    """The text with one kind of apostrophe, and valid as UTF-8."""
    return text.translate(_APOSTROPHES).encode(errors="replace").decode()


# Which words of a text stand in a query, compared as search engines with an English analyzer do.

WORD = re.compile(r"\w+(?:['’＇]\w+)*")  # noqa: RUF001 - all three are written for possessives
"""A word as it is shown."""


class MatchedWords:
    """The words of a query, by which texts are looked through."""

    def __init__(self, query: str) -> None:
        self._analyzer = english()
        self._terms = frozenset(self._terms_of(query))

    def of(self, *texts: str) -> tuple[str, ...]:
        """The words of the texts that match one of the query's, each once, as they are written."""
        words = dict.fromkeys(word for text in texts for word in WORD.findall(text))
        return tuple(word for word in words if not self._terms.isdisjoint(self._terms_of(word)))

    def _terms_of(self, text: str) -> list[str]:
        terms: list[str] = self._analyzer.analyze(plain(text))
        return terms
