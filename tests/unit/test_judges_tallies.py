"""What verdicts come to: shares, means, and who counts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.evaluation.judging.tallies import (
    PREFERENCES,
    Graded,
    Tally,
    claims,
    consistency,
    seen_by,
    tallies_by_kind,
    tally,
)
from cotrail.systems.judge.rubric import ClaimVerdict, Judgement
from tests.cases import each_case

CORRECT = {"correct": 1.0, "incorrect": 0.0}
CRAG = {"correct": 1.0, "missing": 0.0, "incorrect": -1.0}
CLAIMS = {"supported": 1.0, "unsupported": 0.0, "contradicted": -1.0}
judgements = st.sampled_from([*CRAG]).map(lambda verdict: said(verdict, CRAG[verdict]))


def said(verdict: str, score: float, **more: Any) -> Judgement:
    return Judgement(rubric="r", verdict=verdict, score=score, **more)


def graded(judgement: Judgement | None, *, unanswered: float | None = None, kind: str = "") -> Graded:
    return Graded(kinds={"type": kind} if kind else {}, judgement=judgement, unanswered=unanswered)


def counts(found: Tally) -> dict[str, int]:
    return {verdict: share.hits for verdict, share in found.verdicts.items()}


def test_a_question_that_was_never_answered_counts_and_an_answer_without_a_verdict_does_not() -> None:
    judged = [graded(said("correct", 1))] * 3 + [graded(said("incorrect", 0))]
    found = tally([*judged, graded(None), graded(None, unanswered=0)], CORRECT)
    assert (found.questions, found.judged, found.unanswered, found.without) == (5, 4, 1, 1)
    assert counts(found) == {"correct": 3, "incorrect": 1}
    assert found.mean == pytest.approx(3 / 5)
    assert found.interval is not None
    assert (found.interval.method, found.interval.questions) == ("clopper-pearson", 5)
    # Clopper and Pearson's interval of 3 of 5.
    assert (found.interval.low, found.interval.high) == pytest.approx((0.14663, 0.94726), abs=1e-4)


def test_missing_verdicts_have_bounds_as_if_all_were_wrong_or_all_right() -> None:
    found = tally([graded(said("correct", 1))] * 3 + [graded(None)] * 2, CRAG)
    assert (found.without, found.mean, found.most) == (2, 1, 1)
    assert found.least == pytest.approx((3 - 2) / 5)
    found = tally([graded(said("correct", 1)), graded(said("incorrect", 0)), graded(None)], CORRECT)
    assert found.least == pytest.approx(1 / 3)
    assert found.most == pytest.approx(2 / 3)
    assert (tally([], CORRECT).least, tally([graded(None)], CORRECT).most) == (None, 1)


@given(st.lists(judgements.map(graded) | st.just(graded(None)), min_size=1))
def test_the_mean_lies_within_its_bounds_which_are_one_where_nothing_is_missing(questions: list[Graded]) -> None:
    found = tally(questions, CRAG)
    assert found.least is not None
    assert found.most is not None
    assert found.mean is None or found.least - 1e-9 <= found.mean <= found.most + 1e-9
    assert (found.least == found.most) == (found.without == 0)


def test_scores_below_zero_have_an_interval_that_ends_at_the_lowest_score() -> None:
    found = tally([graded(said("incorrect", -1))] * 9 + [graded(said("missing", 0))], CRAG)
    assert found.mean == pytest.approx(-0.9)
    assert found.interval is not None
    assert found.interval.method == "gaffke"
    assert found.interval.low == pytest.approx(-1, abs=0.003)
    assert counts(found) == {"correct": 0, "missing": 1, "incorrect": 9}


def test_verdicts_are_counted_by_kind_too() -> None:
    parts = tallies_by_kind(
        [graded(said("correct", 1), kind="bridge")] * 2 + [graded(None, unanswered=0, kind="comparison")], CORRECT
    )
    assert [*parts["type"]] == ["bridge", "comparison"]
    assert (parts["type"]["bridge"].mean, parts["type"]["comparison"].mean) == (1, 0)


def test_without_questions_there_is_no_mean() -> None:
    found = tally([], CORRECT)
    assert (found.questions, found.mean, found.interval) == (0, None, None)


@each_case(
    ("verdict", "score", "place", "seen"),
    [
        ("first", 1, 0, "win"),
        ("first", 1, 1, "loss"),
        ("second", 0, 0, "loss"),
        ("second", 0, 1, "win"),
        ("tie", 0.5, 0, "tie"),
        ("tie", 0.5, 1, "tie"),
    ],
)
def test_a_preference_is_seen_from_one_of_the_runs(verdict: str, score: float, place: int, seen: str) -> None:
    judgement = seen_by(said(verdict, score, consistent=True), place)
    assert judgement.verdict == seen
    assert judgement.score == PREFERENCES[seen]


def test_preferences_are_consistent_where_both_orders_agree() -> None:
    found = consistency(
        [said("tie", 0.5, consistent=False), said("tie", 0.5, consistent=True), said("first", 1, consistent=True)]
    )
    assert (found.hits, found.of) == (2, 3)
    assert found.interval is not None
    assert consistency([]).value is None


def test_claims_are_supported_only_by_what_is_cited() -> None:
    answers = [
        said("partly", 0.5, claims=(claim("supported", 1), claim("supported"))),
        said("contradicted", 0, claims=(claim("contradicted", 2), claim("unsupported"))),
        said("no claims", 0),
    ]
    found = claims(answers, CLAIMS)
    assert (found.answers, found.claims, found.cited) == (3, 4, 2)
    assert (found.supported, found.contradicted, found.unsupported) == (1, 1, 2)


def claim(verdict: str, *cited: int) -> ClaimVerdict:
    return ClaimVerdict(claim="It rains.", verdict=verdict, cited=cited)


@given(
    questions=st.lists(st.builds(graded, st.none() | judgements, unanswered=st.sampled_from([None, 0.0])), max_size=30)
)
def test_every_question_counts_once(questions: list[Graded]) -> None:
    found = tally(questions, CRAG)
    assert found.questions + found.without == len(questions)
    assert found.judged + found.unanswered == found.questions
    assert sum(counts(found).values()) == found.judged
    scores = [score for each in questions if (score := each.score) is not None]
    assert len(scores) == found.questions
    if found.mean is not None and found.interval is not None:
        assert -1 <= found.interval.low <= found.mean <= found.interval.high <= 1
