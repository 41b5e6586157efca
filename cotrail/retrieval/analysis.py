"""How titles, texts and queries become words: as Elasticsearch's `english` analyzer does it, with tantivy's parts."""

import tantivy

WORD = r"\w+(?:['.]\w+)*"
"""Letters and digits, with apostrophes and points inside: `don't`, `o'neil`, `u.s.a`."""

STOP_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such "
    "that the their then there these they this to was will with"
)
"""Lucene's English stop words."""

ANALYZER = f"1: {WORD}, lower-cased, without 's and Lucene's stop words, stemmed as English"
"""Names what is done here. An index built with another one isn't searched; change the number with the code."""

_APOSTROPHES = str.maketrans("’＇", "''")  # noqa: RUF001 - both are written for possessives


def english() -> tantivy.TextAnalyzer:
    """The analyzer; hand it what `plain` returns."""
    # The stemmer takes the possessive off, but only behind the stop words: so `it's` is a stop word too.
    stop_words = [form for word in STOP_WORDS.split() for form in (word, f"{word}'s")]
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(WORD))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.custom_stopword(stop_words))
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


def plain(text: str) -> str:
    """The text with one kind of apostrophe, and valid as UTF-8."""
    return text.translate(_APOSTROPHES).encode(errors="replace").decode()
