from hypothesis import given
from hypothesis import strategies as st

from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics.answer_metrics import cover_em, cover_em_words
from cotrail.evaluation.metrics.answer_scores import answer_scores
from tests.cases import each_case

answers = st.one_of(
    st.text(),
    st.lists(st.sampled_from(["yes", "no", "the", "red", "fox", "No.", "I", "know"]), max_size=5).map(" ".join),
)


@each_case(
    ("prediction", "answer", "by_substring", "by_words"),
    [
        ("The Red Fox!", "a red fox", 1, 1),
        ("It was a red fox, they say.", "red fox", 1, 1),
        ("The fox is red.", "red fox", 0, 1),
        ("a redfox", "red fox", 0, 0),
        ("red foxes", "red fox", 1, 0),
        ("red", "red fox", 0, 0),
        ("I know.", "no", 1, 0),
        ("No, I know.", "no", 1, 1),
        ("not in the ink", "no", 1, 0),
        ("yesterday", "yes", 1, 0),
        ("yes and no", "no", 1, 1),
        ("It's 1,999.", "1999", 1, 1),
        ("in 19990", "1999", 1, 0),
        ("fox", "fox fox", 0, 1),
        # Without white space between words, a whole sentence is one of them.
        ("それは東京です", "東京", 1, 0),
        ("答え: 東京", "東京", 1, 1),
        ("в Москве", "Москва", 0, 0),
        ("книга ЖИЗНИ", "Жизни", 1, 1),
        ("two éclairs", "eclair", 0, 0),
        ("", "ink", 0, 0),
        # Nothing but articles and punctuation are no words.
        ("The!", "ink", 0, 0),
        ("ink", "The", 0, 0),
        ("", "The", 1, 1),
        # All spans of an answer of several, in any order.
        ("blood and ink", '["ink", "blood"]', 1, 1),
        ("blood", '["ink", "blood"]', 0, 0),
    ],
)
def test_an_answer_covers_a_published_one_by_substring_and_by_words(
    prediction: str, answer: str, by_substring: int, by_words: int
) -> None:
    assert cover_em(prediction, (answer,)) == by_substring
    assert cover_em_words(prediction, (answer,)) == by_words


def test_one_covered_answer_of_several_is_enough() -> None:
    for cover in (cover_em, cover_em_words):
        assert cover("It was Ann Pen.", ("A. Pen", "Ann Pen")) == 1
        assert cover("It was Ann Ink.", ("A. Pen", "Ann Pen")) == 0


def test_without_a_published_answer_there_is_no_score() -> None:
    assert cover_em("ink", ()) is None
    assert cover_em_words("ink", ()) is None


@given(answers, answers)
def test_an_exact_match_is_covered_in_both_ways(prediction: str, answer: str) -> None:
    scores = answer_scores(scoring_of("musique"), prediction, (answer,))
    assert scores is not None
    if scores.em == 1 and not answer.startswith("["):
        assert cover_em(prediction, (answer,)) == cover_em_words(prediction, (answer,)) == 1


@given(answers, answers, answers)
def test_a_longer_answer_covers_what_a_part_of_it_covers(prediction: str, more: str, answer: str) -> None:
    # Of an answer without words there is no part to cover.
    for cover in (cover_em, cover_em_words):
        if cover(prediction, (f"ink {answer}",)) == 1:
            assert cover(f"{prediction} {more}", (f"ink {answer}",)) == 1
