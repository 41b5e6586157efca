import json

import ftfy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.common.answer_normalization import normalized
from cotrail.data.datasets.registry import scoring_of
from cotrail.errors import UnknownNameError
from cotrail.evaluation.metrics.answer_scores import (
    AnswerScores,
    answer_scores,
    drop_scores,
    predicted_spans,
    published_spans,
    repaired,
    tuning_f1,
)
from tests.cases import each_case

WORD_BY_WORD = ("hotpotqa", "2wikimultihopqa", "musique", "jsonl")
BY_SPANS = ("iirc",)

datasets = st.sampled_from(WORD_BY_WORD)
answers = st.one_of(
    st.text(),
    st.lists(st.sampled_from(["yes", "no", "the", "a", "red", "fox", "No.", "ink"]), max_size=5).map(" ".join),
)


def scores(dataset: str, prediction: str, *golds: str) -> tuple[float, float]:
    result = answer_scores(scoring_of(dataset), prediction, golds)
    assert result is not None
    return result.em, round(result.f1, 12)


@each_case(
    ("answer", "expected"),
    [
        ("The  Red-Fox!", "redfox"),
        ("an apple a day", "apple day"),
        ("Theatre of a nation", "theatre of nation"),
        ("U.S.A.", "usa"),
        ("don\u2019t", "don\u2019t"),
        ("The", ""),
        ("ÉCLAIR", "éclair"),
    ],
)
def test_answers_are_normalized(answer: str, expected: str) -> None:
    assert normalized(answer) == expected


@each_case(
    ("dataset", "prediction", "gold", "em", "f1"),
    [
        ("hotpotqa", "The red fox.", "red fox", 1, 1),
        ("hotpotqa", "red", "red fox", 0, 2 / 3),
        ("hotpotqa", "red red", "red fox fox", 0, 2 / 5),
        ("hotpotqa", "blue", "red", 0, 0),
        ("hotpotqa", "yes it is", "yes", 0, 0),
        ("hotpotqa", "no", "no way", 0, 0),
        ("hotpotqa", "noanswer", "noanswer given", 0, 0),
        ("hotpotqa", "Yes.", "yes", 1, 1),
        ("hotpotqa", "", "ink", 0, 0),
        ("hotpotqa", "the", "a", 1, 0),
        ("2wikimultihopqa", "The no.", "no", 1, 1),
        ("2wikimultihopqa", "no", "no way", 0, 0),
        ("musique", "yes it is", "yes", 0, 1 / 2),
        ("musique", "the", "a", 1, 1),
        ("musique", "", "ink", 0, 0),
        ("musique", "ink", "the", 0, 0),
        ("jsonl", "no", "no way", 0, 2 / 3),
    ],
)
def test_scores_are_those_of_the_official_scripts(
    dataset: str, prediction: str, gold: str, em: float, f1: float
) -> None:
    assert scores(dataset, prediction, gold) == (em, round(f1, 12))


def test_the_best_of_several_answers_counts_for_each_score() -> None:
    assert scores("musique", "G. Stanley Hall", "Stanley Hall", "Granville Stanley Hall, M.D.") == (0, 4 / 5)
    assert scores("musique", "Hall", "Stanley Hall", "Hall") == (1, 1)


@each_case("dataset", WORD_BY_WORD + BY_SPANS)
def test_without_published_answers_there_are_no_scores(dataset: str) -> None:
    assert answer_scores(scoring_of(dataset), "ink", ()) is None


def test_an_unknown_dataset_has_no_rule() -> None:
    with pytest.raises(UnknownNameError, match=r"there are \d+, such as hotpotqa, 2wikimultihopqa, "):
        answer_scores(scoring_of("zork"), "ink", ("ink",))


@given(
    dataset=st.sampled_from(WORD_BY_WORD + BY_SPANS),
    prediction=answers,
    golds=st.lists(answers, min_size=1, max_size=3),
)
def test_scores_are_between_0_and_1(dataset: str, prediction: str, golds: list[str]) -> None:
    result = answer_scores(scoring_of(dataset), prediction, golds)
    assert result is not None
    assert result.em in (0, 1)
    assert 0 <= result.f1 <= 1


@given(dataset=datasets, one=answers, other=answers)
def test_scores_do_not_tell_prediction_and_answer_apart(dataset: str, one: str, other: str) -> None:
    assert scores(dataset, one, other) == scores(dataset, other, one)


@given(dataset=datasets, answer=answers)
def test_an_answer_with_words_agrees_with_itself(dataset: str, answer: str) -> None:
    worded = answer + " fox"
    assert answer_scores(scoring_of(dataset), worded, (worded,)) == AnswerScores(em=1, f1=1, precision=1, recall=1)


@given(dataset=datasets, prediction=answers, golds=st.lists(answers, min_size=1, max_size=3), more=answers)
def test_another_answer_never_lowers_a_score(dataset: str, prediction: str, golds: list[str], more: str) -> None:
    before, after = (answer_scores(scoring_of(dataset), prediction, each) for each in (golds, [*golds, more]))
    assert before is not None
    assert after is not None
    assert after.em >= before.em
    assert after.f1 >= before.f1


@given(answer=answers)
def test_normalizing_twice_changes_nothing_more(answer: str) -> None:
    once = normalized(answer)
    assert once == " ".join(once.split())
    assert not set(once.split()) & {"a", "an", "the"}


# Answers of several spans.

phrases = st.lists(st.sampled_from(["ink", "pen", "5", "5.0", "the", "red-fox", "1,000"]), max_size=3).map(" ".join)
span_lists = st.lists(phrases, min_size=1, max_size=9)


@each_case(
    ("prediction", "answer", "em", "f1"),
    [
        ("53 years", "53", 0, 0.67),
        ("5", "5.0", 1, 1),
        ("5", "five", 0, 0),
        ("20 October 1952", "October 20, 1952", 0, 1),
        ("in 1952", "in 1953", 0, 0),
        ("The well-known fox", "well known fox", 1, 1),
        ("red red", "red", 0, 1),
        ("So the answer is: Ink.", "ink", 1, 1),
        ('"ink"', "ink", 1, 1),
        ("", "the", 1, 1),
        ("", "ink", 0, 0),
        ("doesnâ€™t", "doesn't", 1, 1),
        ('["ink", "pen"]', '["pen", "ink"]', 1, 1),
        ("[ink, pen", '["pen", "ink"]', 1, 1),
        ('["ink", "ink", "pen"]', '["pen", "pen", "ink"]', 1, 0.67),
        ("ink", '["pen", "ink"]', 0, 0.5),
        ("ink, pen", '["pen", "ink"]', 0, 0.33),
        ('["ink", "ink"]', "ink", 0, 0.5),
        ('["red ink", "pen"]', '["ink", "pen", "paper"]', 0, 0.56),
    ],
)
def test_answers_by_drops_rules(prediction: str, answer: str, em: float, f1: float) -> None:
    assert scores("iirc", prediction, answer) == (em, f1)


@each_case(
    ("prediction", "spans"),
    [
        ('["Paris, France", "ink"]', ("Paris", " France", " ink")),
        ("a, b]", ("a", " b")),
        ("a, b", ("a, b",)),
        ("[So the answer is: a., b]", ("a", " b")),
        ("The first line.\nSo the answer is: a.", ("The first line.\nSo the answer is: a.",)),
    ],
)
def test_a_prediction_is_taken_for_a_list_as_the_released_code_does(prediction: str, spans: tuple[str, ...]) -> None:
    assert predicted_spans(prediction) == spans


@each_case("answer", ["ink", "[sic]", "[1, 2]", "[]", '["ink"', '{"a": "b"}', '"ink"'])
def test_a_published_answer_that_is_no_list_of_texts_is_one_span(answer: str) -> None:
    assert published_spans(answer) == (answer,)


def test_of_several_answers_the_one_that_agrees_best_counts_for_all_scores() -> None:
    best = answer_scores(scoring_of("iirc"), "ink", ("ink pen", "the ink", "ink and paper"))
    assert best == AnswerScores(em=1, f1=1, precision=1, recall=1)


def test_hyperparameters_are_chosen_by_the_main_answer_alone() -> None:
    assert tuning_f1("ink", ("blue ink", "ink")) == 0.67
    assert tuning_f1("no", ("no way",)) == 0.67
    assert tuning_f1("ink", ()) is None


@given(predicted=span_lists, gold=span_lists)
def test_spans_score_between_0_and_1_whatever_their_order(predicted: list[str], gold: list[str]) -> None:
    ours = drop_scores(predicted, gold)
    assert all(0 <= score <= 1 for score in (ours.em, ours.f1, ours.precision, ours.recall))
    turned = drop_scores(predicted[::-1], gold)
    assert turned.em == ours.em
    assert turned.f1 == pytest.approx(ours.f1, abs=0.011)


@given(gold=span_lists)
def test_spans_agree_with_themselves_and_less_with_a_part_of_them(gold: list[str]) -> None:
    whole = drop_scores(gold, gold)
    assert whole == AnswerScores(em=1, f1=1, precision=1, recall=1)
    assert drop_scores([*gold, "else"], gold).f1 < 1


@given(spans=st.lists(st.text(), min_size=1))
def test_an_answer_of_several_spans_comes_out_of_its_json(spans: list[str]) -> None:
    assert published_spans(json.dumps(spans)) == tuple(spans)
    assert published_spans(json.dumps(spans, ensure_ascii=False)) == tuple(spans)


@given(text=st.text(alphabet=st.characters(max_codepoint=0x2FF)))
def test_text_is_mended_as_ftfy_does(text: str) -> None:
    assert repaired(text) == ftfy.fix_text(text)


@each_case("dataset", ["zsre", "trex", "eli5"])
def test_by_kilts_rules_answers_without_words_match_and_overlap_in_nothing(dataset: str) -> None:
    scores = answer_scores(scoring_of(dataset), "The", ["a"])
    assert scores is not None
    assert (scores.em, scores.f1) == (1.0, 0.0)


@each_case("empty", ["", " "])
@each_case("dataset", ["zsre", "trex", "eli5"])
def test_by_kilts_rules_an_empty_answer_scores_nothing(dataset: str, empty: str) -> None:
    scores = answer_scores(scoring_of(dataset), empty, ["a"])
    assert scores is not None
    assert (scores.em, scores.f1) == (0.0, 0.0)
