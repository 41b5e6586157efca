"""Steps that are carried out again: how they are drawn, which share came out otherwise, and what counts as that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.evaluation.metrics.repeated_scores import draw_steps, otherwise_share
from cotrail.services.results.repeated_steps import said
from cotrail.services.runs.repeating import read_share
from tests.cases import each_case

questions = st.dictionaries(
    st.text(max_size=5), st.lists(st.integers(0, 40), min_size=1, unique=True), min_size=1, max_size=40
)
shares = st.floats(min_value=0.001, max_value=1)


@given(candidates=questions, share=shares, seed=st.integers(0, 9))
def test_a_share_of_the_questions_is_drawn_and_one_step_of_each(
    candidates: dict[str, list[int]], share: float, seed: int
) -> None:
    drawn = draw_steps(candidates, share, seed)
    assert len(drawn) == max(1, round(share * len(candidates)))
    assert all(step in candidates[key] for key, step in drawn.items())
    assert list(drawn) == [key for key in candidates if key in drawn]


@given(candidates=questions, share=shares, seed=st.integers(0, 9))
def test_the_draw_depends_on_seed_and_keys_and_not_on_their_order(
    candidates: dict[str, list[int]], share: float, seed: int
) -> None:
    turned = {key: numbers[::-1] for key, numbers in reversed(candidates.items())}
    assert draw_steps(turned, share, seed) == draw_steps(candidates, share, seed)


@given(candidates=questions, seed=st.integers(0, 9))
def test_a_larger_share_has_the_steps_of_a_smaller_one(candidates: dict[str, list[int]], seed: int) -> None:
    assert draw_steps(candidates, 0.3, seed).items() <= draw_steps(candidates, 0.6, seed).items()


def test_over_many_seeds_each_step_is_drawn_as_often() -> None:
    from scipy.stats import binomtest

    drawn = [draw_steps({"q": [1, 3, 5, 6]}, 1, seed)["q"] for seed in range(4000)]
    assert all(binomtest(drawn.count(step), len(drawn), 1 / 4).pvalue > 0.001 for step in (1, 3, 5, 6))


@given(otherwise=st.lists(st.booleans(), min_size=1, max_size=50))
def test_the_interval_of_the_share_is_clopper_and_pearson_s(otherwise: list[bool]) -> None:
    from scipy.stats import binomtest

    found = otherwise_share(otherwise)
    expected = binomtest(sum(otherwise), len(otherwise)).proportion_ci(0.95, method="exact")
    assert (found.otherwise, found.of, found.share) == (sum(otherwise), len(otherwise), sum(otherwise) / len(otherwise))
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_there_is_no_share_of_nothing() -> None:
    found = otherwise_share([])
    assert (found.share, found.interval) == (None, None)


@each_case(("text", "share"), [("2%", 0.02), ("0.02", 0.02), ("100%", 1), ("1", 1), (" 12.5 % ", 0.125)])
def test_a_share_is_read_in_percent_or_as_a_number(text: str, share: float) -> None:
    assert read_share(text) == pytest.approx(share)


CALL = {"id": "a", "name": "search", "arguments": "{}"}


@each_case(
    ("kind", "one", "other", "agree"),
    [
        (
            "reason",
            {"text": "x", "raw": "x", "prompt_tokens": 9},
            {"text": "x", "raw": "x y", "prompt_tokens": 8},
            True,
        ),
        ("reason", {"text": "x"}, {"text": "X"}, False),
        ("read", {"text": "", "calls": [CALL]}, {"text": "", "calls": [CALL | {"id": "b"}]}, True),
        ("read", {"text": "", "calls": [CALL]}, {"text": "", "calls": [CALL | {"arguments": "[]"}]}, False),
        ("retrieve", {"hits": 4, "digest": "a"}, {"hits": 4, "digest": "b"}, False),
        ("entail", {"entailment": 0.5}, {"entailment": 0.5}, True),
    ],
)
def test_what_a_system_goes_on_with_is_compared(
    kind: str, one: dict[str, object], other: dict[str, object], agree: object
) -> None:
    assert (said(kind, one) == said(kind, other)) == agree
