"""Which words of a text stand in a query, compared as search engines with an English analyzer do."""

import re

from cotrail.engines.retrieval.analysis import ANALYZER, ANALYZERS, english, plain

WORD = re.compile(r"\w+(?:['’＇]\w+)*")  # noqa: RUF001 - all three are written for possessives
"""A word as it is shown."""


class MatchedWords:
    """The words of a query, by which texts are looked through; analyzer: that of the corpus, where it is known."""

    def __init__(self, query: str, analyzer: str = ANALYZER) -> None:
        self._analyzer = english(analyzer if analyzer in ANALYZERS else ANALYZER)
        self._terms = frozenset(self._terms_of(query))

    def of(self, *texts: str) -> tuple[str, ...]:
        """The words of the texts that match one of the query's, each once, as they are written."""
        words = dict.fromkeys(word for text in texts for word in WORD.findall(text))
        return tuple(word for word in words if not self._terms.isdisjoint(self._terms_of(word)))

    def _terms_of(self, text: str) -> list[str]:
        terms: list[str] = self._analyzer.analyze(plain(text))
        return terms
