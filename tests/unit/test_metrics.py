import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.datasets import DATASETS
from cotrail.errors import UnknownNameError
from cotrail.metrics.answer import AnswerScores, answer_scores, normalized
from cotrail.metrics.support import content_key, support_recall
from cotrail.paragraphs import Paragraph
from cotrail.questions import GoldParagraph

datasets = st.sampled_from(DATASETS)
answers = st.one_of(
    st.text(),
    st.lists(st.sampled_from(["yes", "no", "the", "a", "red", "fox", "No.", "ink"]), max_size=5).map(" ".join),
)


def scores(dataset: str, prediction: str, *golds: str) -> tuple[float, float]:
    result = answer_scores(dataset, prediction, golds)
    assert result is not None
    return result.em, round(result.f1, 12)


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("dataset", DATASETS)
def test_without_published_answers_there_are_no_scores(dataset: str) -> None:
    assert answer_scores(dataset, "ink", ()) is None


def test_an_unknown_dataset_has_no_rule() -> None:
    with pytest.raises(UnknownNameError, match="hotpotqa, musique, jsonl"):
        answer_scores("squad", "ink", ("ink",))


@given(dataset=datasets, prediction=answers, golds=st.lists(answers, min_size=1, max_size=3))
def test_scores_are_between_0_and_1(dataset: str, prediction: str, golds: list[str]) -> None:
    result = answer_scores(dataset, prediction, golds)
    assert result is not None
    assert result.em in (0, 1)
    assert 0 <= result.f1 <= 1


@given(dataset=datasets, one=answers, other=answers)
def test_scores_do_not_tell_prediction_and_answer_apart(dataset: str, one: str, other: str) -> None:
    assert scores(dataset, one, other) == scores(dataset, other, one)


@given(dataset=datasets, answer=answers)
def test_an_answer_with_words_agrees_with_itself(dataset: str, answer: str) -> None:
    worded = answer + " fox"
    assert answer_scores(dataset, worded, (worded,)) == AnswerScores(em=1, f1=1)


@given(dataset=datasets, prediction=answers, golds=st.lists(answers, min_size=1, max_size=3), more=answers)
def test_another_answer_never_lowers_a_score(dataset: str, prediction: str, golds: list[str], more: str) -> None:
    before, after = (answer_scores(dataset, prediction, each) for each in (golds, [*golds, more]))
    assert before is not None
    assert after is not None
    assert after.em >= before.em
    assert after.f1 >= before.f1


@given(answer=answers)
def test_normalizing_twice_changes_nothing_more(answer: str) -> None:
    once = normalized(answer)
    assert once == " ".join(once.split())
    assert not set(once.split()) & {"a", "an", "the"}


# Support.


def paragraph(title: str, text: str) -> Paragraph:
    return Paragraph(id=f"{title}-{text}", title=title, text=text)


def gold(*contents: tuple[str, str]) -> tuple[GoldParagraph, ...]:
    return tuple(GoldParagraph(title=title, text=text) for title, text in contents)


def test_recall_is_the_share_of_gold_paragraphs_collected() -> None:
    collected = [paragraph("Ink", "Stains."), paragraph("Pen", "Writes."), paragraph("Ink", "Stains.")]
    assert support_recall(collected, gold(("Ink", "Stains."), ("Paper", "Pulp."))) == 1 / 2
    assert support_recall(collected, gold(("Ink", "Stains."), ("Ink", "Stains."))) == 1
    assert support_recall([], gold(("Ink", "Stains."))) == 0


def test_without_gold_there_is_no_recall() -> None:
    assert support_recall([paragraph("Ink", "Stains.")], ()) is None


def test_white_space_case_and_marks_beyond_ascii_do_not_matter() -> None:
    assert content_key("Alû  demon", "It\u2019s\u00a0so.") == content_key("AL DEMON", "Its so .")


@pytest.mark.parametrize(
    "other", [("Ink", "Stain."), ("Inks", "tains."), ("", "InkStains."), ("Stains.", "Ink"), ("Ink!", "Stains.")]
)
def test_other_content_is_another_paragraph(other: tuple[str, str]) -> None:
    assert content_key(*other) != content_key("Ink", "Stains.")


def test_paragraphs_in_other_scripts_are_told_apart() -> None:
    assert content_key("東京", "日本の首都 2014") != content_key("京都", "日本の都市 2014")
    assert content_key("東京", "日本の 首都") == content_key("東京", "日本の首都")


contents = st.tuples(st.text(max_size=4), st.text(max_size=4))


@given(collected=st.lists(contents), wanted=st.lists(contents, min_size=1))
def test_recall_is_between_0_and_1_and_full_with_all_gold(
    collected: list[tuple[str, str]], wanted: list[tuple[str, str]]
) -> None:
    paragraphs = [paragraph(*content) for content in collected]
    recall = support_recall(paragraphs, gold(*wanted))
    assert recall is not None
    assert 0 <= recall <= 1
    assert support_recall(paragraphs + [paragraph(*content) for content in wanted], gold(*wanted)) == 1
