"""Scores of repeats together."""

from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.confidence_intervals import confidence_sequence
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.evaluation.metrics.repeated_scores import clustered_mean, mean_pass_at_k, repeated_scores

tables = st.integers(2, 5).flatmap(
    lambda times: st.lists(
        st.lists(st.sampled_from([0.0, 1.0]), min_size=times, max_size=times), min_size=2, max_size=12
    )
)


@given(table=tables)
def test_each_metric_has_its_clustered_mean_its_spread_and_pass_at_k(table: list[list[float]]) -> None:
    runs = {
        f"r{number}": {f"q{row}": {"answer_em": scores[number]} for row, scores in enumerate(table)}
        for number in range(len(table[0]))
    }
    found = repeated_scores(runs, len(runs))
    assert (found.runs, found.questions) == (tuple(runs), len(table))
    em, whole = found.metrics["answer_em"], clustered_mean(table)
    assert em is not None
    assert whole is not None
    assert (em.mean, em.standard_error, em.interval) == (whole.mean, whole.standard_error, whole.interval)
    assert em.deviation == pytest.approx(stdev(sum(column) / len(table) for column in zip(*table, strict=True)))
    assert em.pass_at == mean_pass_at_k(table)
    assert [each.k for each in em.pass_at] == list(range(1, len(runs) + 1))
    assert all(found.metrics[name] is None for name in METRICS if name != "answer_em")


def test_a_question_without_the_metric_is_left_out_of_it() -> None:
    scores: dict[str, QuestionScores] = {"q1": {"answer_em": 1.0}, "q2": {"answer_em": None}, "q3": {"answer_em": 0.0}}
    runs = dict.fromkeys("ab", scores)
    em = repeated_scores(runs, 3).metrics["answer_em"]
    assert em is not None
    assert em.mean == 0.5
    assert em.interval is not None
    assert em.interval.questions == 2


def test_of_one_repeat_there_is_no_spread() -> None:
    em = repeated_scores({"a": {"q1": {"answer_em": 1.0}, "q2": {"answer_em": 0.0}}}, 2).metrics["answer_em"]
    assert em is not None
    assert em.deviation is None


def test_the_metrics_that_are_0_or_1_say_so() -> None:
    assert [name for name, metric in METRICS.items() if metric.zero_or_one] == [
        "answer_em",
        "cover_em",
        "cover_em_words",
        "paragraph_em",
    ]


def test_repeats_that_a_budget_ended_have_intervals_that_hold_at_every_stop() -> None:
    runs = {run: {f"q{n}": {"answer_em": float(n % 2), "paragraphs_collected": n} for n in range(8)} for run in "ab"}
    cut = repeated_scores(runs, 2, is_fixed=False)
    em, things = cut.metrics["answer_em"], cut.metrics["paragraphs_collected"]
    assert em is not None
    assert em.interval == confidence_sequence([0.0, 1.0] * 4)
    assert [each.interval for each in em.pass_at] == [em.interval] * 2
    assert things is not None
    assert things.interval is None
    assert "confidence sequences" in cut.caveat
    assert "confidence sequences" not in repeated_scores(runs, 2).caveat
