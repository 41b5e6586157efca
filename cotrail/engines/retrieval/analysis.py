"""How titles, texts and queries become words: as Elasticsearch's `english` analyzer does it, with tantivy's parts."""

import tantivy

_SINGLE = r"\p{Han}\p{Hiragana}"
_LETTER = rf"[\p{{L}}--[{_SINGLE}]]"

WORDS = (
    r"\w+(?:['.]\w+)*",
    rf"[{_SINGLE}]|(?:{_LETTER}(?:['‘.:·]{_LETTER})*|\p{{N}}(?:['.,;]\p{{N}})*|\p{{M}}|_)+",  # noqa: RUF001
)
"""What a word is, in each version of the analyzer; the last one is that of new indexes.

As Unicode's annex 29 has it: some marks hold letters together and others digits (`o'neil`, `u.s.a`, `15,140`), none
holds a letter and a digit together (`no` and `1` in `No.1`), and Chinese characters and hiragana are words one by one.
The first version held together whatever an apostrophe or a point is inside of.
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
"""The analyzers by their names, which indexes have; an index with another one isn't searched."""

ANALYZER = tuple(ANALYZERS)[-1]
"""That of new indexes."""

_APOSTROPHES = str.maketrans("’＇", "''")  # noqa: RUF001 - both are written for possessives


def english(analyzer: str = ANALYZER) -> tantivy.TextAnalyzer:
    """The analyzer of that name; hand it what `plain` returns."""
    # The stemmer takes the possessive off, but only behind the stop words: so `it's` is a stop word too.
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
