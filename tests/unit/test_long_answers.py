import pytest

from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics.answer_metrics import long_answer_score
from tests.cases import each_case


def test_the_nearest_answer_counts() -> None:
    # "ink is dark": with the first, "ink is" of 3 and 5 words; with the second, "ink is dark" of 3 and 4.
    answers = ("ink is a black dye", "Ink is very dark.")
    assert long_answer_score(scoring_of("eli5"), "ink is dark", answers[:1]) == pytest.approx(2 * 2 / (3 + 5))
    assert long_answer_score(scoring_of("eli5"), "ink is dark", answers) == pytest.approx(2 * 3 / (3 + 4))


@each_case("prediction", ["", "...", "墨", "pen"])
def test_an_answer_without_a_common_word_scores_nothing(prediction: str) -> None:
    assert long_answer_score(scoring_of("eli5"), prediction, ("Ink is a dye.",)) == 0


@each_case(("dataset", "answers"), [("eli5", ()), ("hotpotqa", ("ink",)), ("fever", ("true",))])
def test_short_answers_and_unpublished_ones_have_no_score(dataset: str, answers: tuple[str, ...]) -> None:
    assert long_answer_score(scoring_of(dataset), "ink", answers) is None
