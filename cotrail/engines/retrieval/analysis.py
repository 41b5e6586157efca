"""Text analysis of titles, texts and queries: like Elasticsearch's `english` analyzer, from tantivy's parts."""

import tantivy

_SINGLE = r"\p{Han}\p{Hiragana}"
_LETTER = rf"[\p{{L}}--[{_SINGLE}]]"

WORDS = (
    r"\w+(?:['.]\w+)*",
    rf"[{_SINGLE}]|(?:{_LETTER}(?:['‘.:·]{_LETTER})*|\p{{N}}(?:['.,;]\p{{N}})*|\p{{M}}|_)+",  # noqa: RUF001
)
"""The pattern of a word, in each version of the analyzer; new indexes use the last one.

As in Unicode's annex 29, some marks join letters and others digits (`o'neil`, `u.s.a`, `15,140`), none joins a letter
and a digit (`no` and `1` in `No.1`), and each Chinese character or hiragana is a word. The first version joined
everything around an apostrophe or a point.
"""

STOP_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such "
    "that the their then there these they this to was will with"
)
"""Lucene's English stop words."""

ANALYZERS = {
    f"{number}: {word}, lower-cased, without 's and Lucene's stop words, stemmed as English": word
    for number, word in enumerate(WORDS, start=1)
}
"""The analyzers by their names, which indexes record; an index with an unknown one isn't searched."""

ANALYZER = tuple(ANALYZERS)[-1]
"""The analyzer of new indexes."""

_APOSTROPHES = str.maketrans("’＇", "''")  # noqa: RUF001 - both are written for possessives


def english(analyzer: str = ANALYZER) -> tantivy.TextAnalyzer:
    """The analyzer of that name; its input has to be what `plain` returns."""
    # The stemmer removes the possessive, but only after the stop words, so that `it's` has to be a stop word too.
    stop_words = [form for word in STOP_WORDS.split() for form in (word, f"{word}'s")]
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(ANALYZERS[analyzer]))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.custom_stopword(stop_words))
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


def plain(text: str) -> str:
    """The text with one kind of apostrophe, and valid as UTF-8."""
    return text.translate(_APOSTROPHES).encode(errors="replace").decode()
