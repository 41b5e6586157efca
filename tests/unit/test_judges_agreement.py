"""Agreement of judges, against hand computations and worked examples of the literature."""

from collections.abc import Mapping
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.evaluation.judging.tallies import (
    CONSTANT,
    NO_QUESTIONS,
    ONE_VERDICT,
    PERFECT,
    agreement,
    cohens_kappa,
    pair_agreement,
)
from tests.cases import each_case

Given = Mapping[str, Mapping[str, str]]
graded = st.dictionaries(
    st.sampled_from("abc"),
    st.dictionaries(st.sampled_from("12345678"), st.sampled_from(["yes", "no", "?"])),
    min_size=2,
)


def table(counts: Mapping[tuple[str, str], int]) -> list[tuple[str, str]]:
    return [pair for pair, count in counts.items() for _ in range(count)]


def judged(*rows: str) -> Given:
    """Verdicts of judges A, B, ... on questions 0, 1, ..., a character each; a dot is a missing one."""
    return {
        name: {str(place): verdict for place, verdict in enumerate(row) if verdict != "."}
        for name, row in zip("ABCD", rows, strict=False)
    }


def test_kappa_of_two_judges_equals_a_hand_computation() -> None:
    # Of 50: both yes 20, yes and no 5, no and yes 10, both no 15. Observed (20 + 15) / 50 = 0.7; by chance
    # (25/50)(30/50) + (25/50)(20/50) = 0.5; kappa = (0.7 - 0.5) / (1 - 0.5).
    kappa = cohens_kappa(table({("yes", "yes"): 20, ("yes", "no"): 5, ("no", "yes"): 10, ("no", "no"): 15}))
    assert kappa.value == pytest.approx(0.4)
    # Fleiss, Cohen and Everitt's variance by hand: the diagonal (0.4 (1 - 1.1 * 0.6)^2 + 0.3 (1 - 0.9 * 0.6)^2), off it
    # 0.36 (0.1 (0.6 + 0.5)^2 + 0.2 (0.5 + 0.4)^2), less (0.4 - 0.5 * 0.6)^2, over 50 * 0.25.
    diagonal = 0.4 * (1 - 1.1 * 0.6) ** 2 + 0.3 * (1 - 0.9 * 0.6) ** 2
    other = 0.6**2 * (0.1 * 1.1**2 + 0.2 * 0.9**2)
    error = ((diagonal + other - (0.4 - 0.5 * 0.6) ** 2) / (50 * 0.25)) ** 0.5
    assert (kappa.low, kappa.high) == pytest.approx((0.4 - 1.959964 * error, 0.4 + 1.959964 * error), abs=1e-6)


def test_kappa_of_cohens_own_example() -> None:
    # Cohen 1960, table 1: proportions of 200 by two judges over three categories; kappa is .492.
    shares = {(1, 1): 88, (1, 2): 14, (1, 3): 18, (2, 1): 10, (2, 2): 40, (2, 3): 10, (3, 1): 2, (3, 2): 6, (3, 3): 12}
    kappa = cohens_kappa(table({(str(one), str(other)): count for (one, other), count in shares.items()}))
    assert kappa.value == pytest.approx(0.492, abs=5e-4)


def test_kappa_below_chance_is_negative() -> None:
    kappa = cohens_kappa(table({("yes", "no"): 5, ("no", "yes"): 5}))
    assert kappa.value == pytest.approx(-1)
    assert kappa.low == -1


@each_case(
    ("pairs", "value", "note"),
    [
        ([], None, NO_QUESTIONS),
        ([("yes", "yes")] * 3, None, ONE_VERDICT),
        ([("yes", "yes"), ("no", "no")], 1, PERFECT),
        ([("yes", "yes"), ("no", "yes")], 0, CONSTANT),
    ],
)
def test_degenerate_cases_have_a_defined_answer(pairs: list[tuple[str, str]], value: float | None, note: str) -> None:
    kappa = cohens_kappa(pairs)
    assert (kappa.value, kappa.note) == (value, note)


def test_alpha_of_krippendorffs_own_example() -> None:
    # Krippendorff 2011, section C: four observers, twelve units, missing data, nominal; alpha is 0.743.
    found = agreement(judged("123321412...", "1233224125.3", ".3332342251.", "12332441251."))
    assert found.alpha == pytest.approx(0.743, abs=5e-4)
    assert (found.questions, found.unanimous) == (11, 8)
    assert len(found.pairs) == 6


def test_alpha_of_two_judges_equals_a_hand_computation() -> None:
    # Krippendorff 2011, section A: two observers, binary, ten units, four disagreements; of 20 values 14 are 0 and 6
    # are 1: alpha = 1 - 19 * 4 / (14 * 6).
    found = agreement(judged("0100000010", "1110010000"))
    assert found.alpha == pytest.approx(1 - 19 * 4 / (14 * 6))
    assert found.alpha == pytest.approx(0.095, abs=5e-4)


def test_shares_count_questions_that_both_judged_with_an_exact_interval() -> None:
    [pair] = agreement(judged("yynn.", "ynnny")).pairs
    assert (pair.first, pair.second, pair.same.of, pair.same.hits, pair.same.value) == ("A", "B", 4, 3, 0.75)
    assert pair.same.interval is not None
    assert pair.same.interval.method == "clopper-pearson"
    assert pair.same.interval.questions == 4


def test_without_a_question_in_common_nothing_is_said() -> None:
    found = agreement(judged("y..", ".n."))
    assert (found.questions, found.alpha, found.note) == (0, None, "no question has two verdicts")
    assert (found.pairs[0].same.value, found.pairs[0].same.interval) == (None, None)


def test_one_verdict_alone_leaves_alpha_undefined() -> None:
    found = agreement(judged("yyy", "yyy", "y.n"))
    assert found.alpha is not None
    found = agreement(judged("yyyn", "yyy."))  # the other verdict has none beside it
    assert (found.alpha, found.unanimous) == (None, 3)
    assert "chance" in found.note


def by_hand(judges: Given) -> float | None:
    """Alpha by the definition of its disagreements, over pairs of values."""
    units = [[of[key] for of in judges.values() if key in of] for key in "12345678"]
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    expected = sum(one != other for one, other in combinations(values, 2)) / max(len(values) * (len(values) - 1) / 2, 1)
    if not expected:
        return None
    observed = sum(2 * sum(one != other for one, other in combinations(unit, 2)) / (len(unit) - 1) for unit in units)
    return 1 - observed / len(values) / expected


@given(judges=graded)
def test_alpha_follows_its_definition(judges: Given) -> None:
    expected = by_hand(judges)
    found = agreement(judges)
    assert found.alpha == (None if expected is None else pytest.approx(expected))
    assert (found.alpha is None) == bool(found.note)


@given(judges=graded)
def test_kappa_is_symmetric_and_within_its_interval(judges: Given) -> None:
    (_, ours), (_, theirs), *_ = judges.items()
    one, other = pair_agreement("a", "b", ours, theirs), pair_agreement("b", "a", theirs, ours)
    assert (one.same, one.kappa.note) == (other.same, other.kappa.note)
    assert one.kappa.value == (None if other.kappa.value is None else pytest.approx(other.kappa.value))
    if one.kappa.value is not None and one.kappa.low is not None and one.kappa.high is not None:
        assert -1 <= one.kappa.low <= one.kappa.value + 1e-9
        assert one.kappa.value - 1e-9 <= one.kappa.high <= 1
