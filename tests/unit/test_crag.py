"""CRAG's three-valued score without its judge."""

from hypothesis import given
from hypothesis import strategies as st

from cotrail.evaluation.metrics.answer_metrics import crag_score
from cotrail.evaluation.metrics.confidence_intervals import confidence_interval
from cotrail.evaluation.metrics.question_scores import mean_scores
from tests.cases import each_case
from tests.unit.scored import question_scores

texts = st.one_of(st.text(max_size=20), st.sampled_from(["I don't know", "Invalid question", "ink", " INK ", ""]))


@each_case(
    ("prediction", "answer", "score"),
    [
        ("Ink", "ink", 1),
        (" ink ", "Ink", 1),
        ("the ink", "ink", -1),
        ("ink.", "ink", -1),
        ("", "ink", 0),
        ("  ", "ink", 0),
        ("Sorry, I don't know.", "ink", 0),
        ("I don\u2019t know", "ink", 0),
        ("I do not know", "ink", -1),
        ("I don't know", "I don't know", 0),
        ("That is an invalid question.", "invalid question", 1),
        ("invalid question", "ink", -1),
        ("ink", "invalid question", -1),
    ],
)
def test_an_answer_is_right_missing_or_wrong(prediction: str, answer: str, score: int) -> None:
    assert crag_score(prediction, (answer,)) == score


def test_one_of_several_published_answers_is_enough_and_without_any_there_is_no_score() -> None:
    assert crag_score("ink", ("blood", "Ink")) == 1
    assert crag_score("ink", ()) is None


@given(prediction=texts, answers=st.lists(texts, min_size=1, max_size=3))
def test_it_is_what_the_three_cases_say(prediction: str, answers: list[str]) -> None:
    said = prediction.strip().lower()
    published = [each.strip().lower() for each in answers]
    missing = not said or any(f"i don{mark}t know" in said for mark in "'\u2019")
    invalid = "invalid" in said and any("invalid" in each for each in published)
    typographic = [each.replace("\u2019", "'") for each in published]
    right = invalid or said.replace("\u2019", "'") in typographic
    assert crag_score(prediction, answers) == (0 if missing else 1 if right else -1)


@given(scores=st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=2, max_size=30))
def test_its_interval_may_reach_below_0_and_holds_the_mean(scores: list[float]) -> None:
    interval = confidence_interval(scores, 1, -1)
    assert interval is not None
    assert -1 <= interval.low <= sum(scores) / len(scores) <= interval.high <= 1
    assert interval.method == ("gaffke" if 0 in scores else "clopper-pearson")


def test_a_question_that_is_not_finished_is_missing() -> None:
    rows = [question_scores("jsonl", answer, ("ink",), [], ()) for answer in (None, "blood", "blood", "Ink")]
    assert [row["crag"] for row in rows] == [0, -1, -1, 1]
    means = mean_scores(rows)
    assert means.metrics["crag"] == -1 / 4
    assert means.intervals["crag"] is not None
    assert means.intervals["crag"].low < -1 / 4
