"""A server's explanation of a score tells whether it holds BM25's factor k1 + 1."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.engines.retrieval.elasticsearch.retriever import Explanation, missing_factor

POSITIVE = st.floats(0.01, 10)


def word(factor: float, idf: float, tf: float, k1: float) -> Explanation:
    """As Lucene explains the score of a word."""
    parts = [
        Explanation(idf, "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:"),
        Explanation(
            tf,
            "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
            [Explanation(1.0, "freq, occurrences of term within document"), Explanation(k1, "k1, term saturation")],
        ),
    ]
    named = [Explanation(factor, "boost"), *parts] if factor != 1 else parts
    return Explanation(factor * idf * tf, "score(freq=1.0), computed as boost * idf * tf from:", named)


def query(*words: Explanation) -> Explanation:
    """As it explains a query's, in which words are nested and other things count too."""
    nested = [
        Explanation(each.value, "weight(text:ink in 0) [PerFieldSimilarity], result of:", [each]) for each in words
    ]
    return Explanation(9.0, "sum of:", [Explanation(0.0, "match on required clause, product of:"), *nested])


@given(POSITIVE, POSITIVE, st.floats(0.1, 3))
def test_the_factor_is_missing_where_scores_are_idf_times_tf(idf: float, tf: float, k1: float) -> None:
    assert missing_factor(query(word(1.0, idf, tf, k1))) == pytest.approx(1 + k1)
    assert missing_factor(query(word(1 + k1, idf, tf, k1))) == 1


def test_scores_that_are_not_bm25_stay_as_they_are() -> None:
    assert missing_factor(Explanation(1.0, "ConstantScore(title.whole:Ink)")) == 1
    assert missing_factor(query()) == 1


def test_an_answer_s_explanation_is_read() -> None:
    answer = b'{"value": 2, "description": "sum of:", "details": [{"value": 1, "description": "a", "details": []}]}'
    read = msgspec.json.decode(answer, type=Explanation)
    assert [each.description for each in read] == ["sum of:", "a"]
