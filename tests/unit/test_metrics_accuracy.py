from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.data.datasets.registry import scoring_of
from cotrail.errors import InputError
from cotrail.evaluation.metrics.answer_scores import accuracy, answer_scores, is_unclear, verdict_scores
from cotrail.evaluation.metrics.confidence_intervals import mcnemar
from cotrail.evaluation.metrics.factual_errors import chain_faithfulness, explanation_faithfulness
from cotrail.faithfulness.weighing import ChosenFact, WeighedChain, WeighedSentence, Weighing
from tests.cases import each_case
from tests.unit.official_figures import official_figures


@each_case(
    ("prediction", "answer", "right", "unclear"),
    [
        ("yes", "yes", True, False),
        ("Yes.", "yes", True, False),
        ("no", "yes", False, False),
        ("", "yes", False, True),
        ("yes and no", "yes", False, True),
        ("true", "yes", False, True),
        ("TRUE", "true", True, False),
        ("false", "true", False, False),
        ("no", "false", False, True),
        ("", "Tim Pawlenty", False, False),
    ],
)
def test_a_verdict_is_right_wrong_or_unclear(prediction: str, answer: str, right: bool, unclear: bool) -> None:  # noqa: FBT001
    assert (verdict_scores(prediction, answer).em == 1) is right
    assert is_unclear(prediction, answer) is unclear


@each_case(("dataset", "word"), [("strategyqa", "no"), ("infotabs", "false"), ("fever", "not enough info")])
def test_the_words_of_a_verdict_count_all_or_nothing(dataset: str, word: str) -> None:
    scores = answer_scores(scoring_of(dataset), f"probably {word}", (word,))
    assert scores is not None
    assert scores.em == scores.f1 == scores.precision == scores.recall == 0


@given(st.lists(st.sampled_from(["right", "unclear", "wrong"]), min_size=1))
def test_unclear_answers_count_half_in_the_adjusted_accuracy(judged: list[str]) -> None:
    found = accuracy((each == "right", each == "unclear") for each in judged)
    right, unclear = judged.count("right"), judged.count("unclear")
    assert found.share == right / len(judged)
    assert found.adjusted == pytest.approx(float((right + Fraction(unclear, 2)) / len(judged)))


def test_the_figures_are_those_that_the_released_code_prints() -> None:
    verdicts = official_figures("strategyqa", ["yes", "No.", "perhaps", "", None], [["yes"]] * 5)
    assert verdicts == {"accuracy": 0.2, "adjusted_accuracy": 0.4}
    assert official_figures("infotabs", ["true", "", "False."], [["true"], ["true"], ["false"]]) == {"accuracy": 2 / 3}
    assert official_figures("fever", ["True.", "not enough info", "true", None], [["true"]] * 4) == {"accuracy": 0.5}
    temporal = official_figures(
        "tempquestions", ["the Tim Pawlenty.", "James Monroe"], [["Tim Pawlenty"], ["James Madison"]]
    )
    assert temporal == {"exact_match": 50.0, "f1": 75.0}


def weighed(
    *chains: tuple[float, ...], chosen: int | None = 0, function: int = 1, facts: tuple[float, ...] = ()
) -> Weighing:
    """A weighing with these entailments of each chain's sentences, and of a variant's facts."""
    return Weighing(
        function=function,
        chains=tuple(
            WeighedChain(
                number=number,
                text="",
                prediction="yes",
                faithfulness=0.0,
                sentences=tuple(
                    WeighedSentence(text="", evidence=None, similarity=0, entailment=each, contradiction=0, score=0)
                    for each in entailments
                ),
            )
            for number, entailments in enumerate(chains)
        ),
        predictions=(),
        chosen=chosen,
        facts=tuple(
            ChosenFact(text="", replaces="", origin="kept", entailment=each, contradiction=0.0) for each in facts
        ),
    )


def test_an_explanation_is_the_chain_that_stands_for_the_answer() -> None:
    assert explanation_faithfulness(weighed((0.1, 0.3), (0.5, 1.0, 0.0), chosen=1)) == pytest.approx(0.5)


def test_the_explanation_of_a_variant_is_its_facts() -> None:
    assert explanation_faithfulness(weighed((0.1, 0.3), facts=(0.8, 1.0))) == pytest.approx(0.9)


@each_case("weighing", [weighed((0.1,), chosen=None), weighed(()), weighed((0.1,), function=0), weighed(chosen=None)])
def test_an_answer_without_facts_or_evidence_has_no_faithfulness(weighing: Weighing) -> None:
    assert explanation_faithfulness(weighing) is None


def test_each_chain_has_a_faithfulness_of_its_own() -> None:
    assert chain_faithfulness(weighed((0.2, 0.4), (), (1.0,))) == pytest.approx((0.3, 1.0))
    assert chain_faithfulness(weighed((0.2, 0.4), function=0)) == ()


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=200))
def test_mcnemars_test_is_the_exact_binomial_one(pairs: list[tuple[bool, bool]]) -> None:
    from scipy.stats import binomtest

    ours, theirs = zip(*pairs, strict=True)
    found = mcnemar(ours, theirs)
    first, second = pairs.count((True, False)), pairs.count((False, True))
    assert (found.questions, found.ours, found.theirs) == (len(pairs), first, second)
    expected = binomtest(first, first + second).pvalue if first + second else 1.0
    assert found.p_value == pytest.approx(expected)


def test_mcnemars_test_holds_for_many_questions() -> None:
    assert mcnemar([True] * 5_000, [False] * 5_000).p_value == 0
    assert mcnemar([True, False] * 3_000, [False, True] * 3_000).p_value == 1


@each_case(("ours", "theirs"), [([], []), ([True], [True, False])])
def test_answers_to_different_questions_can_not_be_compared(ours: list[bool], theirs: list[bool]) -> None:
    with pytest.raises(InputError, match="can't be compared"):
        mcnemar(ours, theirs)
