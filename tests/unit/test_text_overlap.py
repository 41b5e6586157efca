import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.common.answer_normalization import contained, normalized, rouge_l
from tests.cases import each_case


@each_case(
    ("short", "long", "expected"),
    [
        ("red fox", "It was the Red Fox, they say.", True),
        ("The red-fox", "a redfox", True),
        ("red fox", "fox, red", False),
        ("no", "I know", True),
        ("I know", "no", False),
        ("No!", "not the ink", True),
        ("東京", "それは東京です", True),
        ("東京", "それは京都です", False),
        ("Éclair", "two éclairs", True),
        ("eclair", "two éclairs", False),
        ("", "ink", True),
        ("The!", "", True),
        ("ink", "", False),
    ],
)
def test_a_text_is_contained_in_another_character_by_character(short: str, long: str, *, expected: bool) -> None:
    assert contained(short, long) is expected


@given(st.text(), st.text(), st.text())
def test_a_text_is_contained_in_itself_with_words_around_it(before: str, text: str, after: str) -> None:
    assert contained(text, f"{before} {normalized(text)} {after}")


@each_case(
    ("prediction", "reference", "expected"),
    [
        ("the red fox", "The red fox!", 1),
        # The longest common subsequence "the fox runs" has 3 words: P 3/4, R 3/5.
        ("the quick fox runs", "the red fox often runs", 2 / 3),
        # Order counts: one word of two can be aligned.
        ("fox red", "red fox", 1 / 2),
        # A word is used once: P 1/3, R 1.
        ("ink ink ink", "ink", 1 / 2),
        # Without stemming, "runs" isn't "run"; apostrophes separate words: P 1/2, R 1/3.
        ("it runs", "it's run", 2 / 5),
        ("fox", "ink", 0),
        ("", "ink", 0),
        ("ink", "", 0),
        ("", "", 0),
        ("東京", "東京", 0),
        # Letters with accents separate words: "caf" is all that is left of either.
        ("Café", "café", 1),
        ("1999", "In 1999", 2 / 3),
    ],
)
def test_rouge_l_is_the_f1_of_the_longest_common_subsequence(prediction: str, reference: str, expected: float) -> None:
    assert rouge_l(prediction, reference) == pytest.approx(expected)


@given(st.text(), st.text())
def test_rouge_l_is_a_share_and_treats_both_texts_alike(one: str, other: str) -> None:
    assert rouge_l(one, other) == pytest.approx(rouge_l(other, one))
    assert 0 <= rouge_l(one, other) <= 1


WORDS = st.lists(st.sampled_from(["red", "Fox", "ink", "1999", "the", "é", "it's", "--"]), max_size=12).map(" ".join)


@given(WORDS, WORDS)
def test_rouge_l_is_rouge_scores_to_the_last_digit(prediction: str, reference: str) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    scored = RougeScorer(["rougeL"]).score(reference, prediction)["rougeL"]
    assert rouge_l(prediction, reference) == scored.fmeasure
