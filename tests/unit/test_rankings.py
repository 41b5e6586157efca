"""Rankings of what was found against judged documents, compared with a direct computation over plain ids."""

from collections.abc import Callable
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics.question_scores import mean_scores
from cotrail.evaluation.metrics.supporting_paragraphs import (
    Judged,
    is_gold,
    judged,
    ndcg,
    recall_at,
    reciprocal_rank,
    support_scores,
)
from tests.unit.scored import question_scores

OWN = scoring_of("jsonl")

Form = Callable[[int, int], GoldParagraph]

rankings = st.lists(st.integers(min_value=0, max_value=30), unique=True, max_size=25)
qrels = st.dictionaries(st.integers(min_value=0, max_value=30), st.integers(min_value=1, max_value=4), min_size=1)
cuts = st.integers(min_value=1, max_value=12)


def paragraph(number: int) -> Paragraph:
    return Paragraph(id=str(number), title=f"Page {number}", text=f"Text {number}.")


def by_id(number: int, grade: int = 1) -> GoldParagraph:
    return GoldParagraph(title="", text="", id=str(number), by="id", grade=grade)


def by_content(number: int, grade: int = 1) -> GoldParagraph:
    return GoldParagraph(title=f"Page {number}", text=f"Text {number}.", grade=grade)


def by_title(number: int, grade: int = 1) -> GoldParagraph:
    return GoldParagraph(title=f"Page {number}", text="", by="title", grade=grade)


@given(ranking=rankings, grades=qrels, cut=cuts, form=st.sampled_from([by_id, by_content, by_title]))
def test_scores_are_those_of_a_direct_computation(
    ranking: list[int], grades: dict[int, int], cut: int, form: Form
) -> None:
    found = list(map(paragraph, ranking))
    documents = judged(OWN, found, [form(number, grade) for number, grade in grades.items()])
    top = ranking[:cut]
    gains = [grades.get(number, 0) for number in top]
    best = sorted(grades.values(), reverse=True)[:cut]
    gained, possible = (sum(gain / log2(place + 2) for place, gain in enumerate(each)) for each in (gains, best))
    assert ndcg(documents, cut) == pytest.approx(gained / possible)
    assert recall_at(documents, cut) == pytest.approx(len(set(top) & set(grades)) / len(grades))
    first = next((place for place, number in enumerate(ranking, start=1) if number in grades), None)
    assert reciprocal_rank(documents) == pytest.approx(1 / first if first else 0)
    support = support_scores(OWN, found, [form(number, 1) for number in grades])
    assert support is not None
    assert support.recall == pytest.approx(recall_at(documents, 100))
    assert [is_gold(each, [form(number, 1) for number in grades]) for each in found] == [n in grades for n in ranking]


@given(grades=qrels, cut=cuts)
def test_the_best_order_scores_1_and_nothing_found_0(grades: dict[int, int], cut: int) -> None:
    gold = [by_id(number, grade) for number, grade in grades.items()]
    best = sorted(grades, key=lambda number: -grades[number])
    assert ndcg(judged(OWN, list(map(paragraph, best)), gold), cut) == pytest.approx(1)
    nothing = judged(OWN, [], gold)
    assert (ndcg(nothing, cut), recall_at(nothing, cut), reciprocal_rank(nothing)) == (0, 0, 0)


def test_a_ranking_by_hand() -> None:
    documents = (Judged(3, 2), Judged(1, None), Judged(2, 11))
    best = 3 + 2 / log2(3) + 1 / 2
    assert ndcg(documents, 10) == pytest.approx((3 / log2(3)) / best)
    assert ndcg(documents, 1) == 0
    assert [recall_at(documents, cut) for cut in (1, 2, 11)] == [0, 1 / 3, 2 / 3]
    assert reciprocal_rank(documents) == 1 / 2


def test_of_a_page_only_the_first_paragraph_counts() -> None:
    owls = [Paragraph(id=str(number), title="Owls", text=f"{number}.") for number in range(3)]
    gold = [GoldParagraph(title="Owls", text="", by="title"), GoldParagraph(title="Ink", text="", by="title")]
    assert judged(OWN, [paragraph(9), *owls], gold) == (Judged(1, 2), Judged(1, None))
    support = support_scores(OWN, [paragraph(9), *owls], gold)
    assert support is not None
    assert (support.recall, support.precision, support.title_recall) == (1 / 2, 3 / 4, 1 / 2)


def test_gold_by_id_has_no_title_to_recall() -> None:
    scores = question_scores("jsonl", "ink", ("ink",), [paragraph(1)], [by_id(1), by_id(2)])
    assert (scores["paragraph_recall"], scores["title_recall"]) == (1 / 2, None)


def test_the_pinned_passage_takes_no_rank() -> None:
    pinned = GoldParagraph(title="Page 7", text="Text 7.")
    assert judged(OWN, [paragraph(7), paragraph(1)], [by_content(1), pinned], pinned) == (Judged(1, 1),)


def test_questions_without_answers_are_scored_by_what_was_found_alone() -> None:
    scores = question_scores("jsonl", None, (), [paragraph(4), paragraph(1)], [by_id(1), by_id(2, grade=2)])
    found = {
        "recall_at_5": 1 / 2,
        "recall_at_10": 1 / 2,
        "recall_at_100": 1 / 2,
        "mrr": 1 / 2,
        "paragraph_recall": 1 / 2,
    }
    assert found.items() <= scores.items()
    assert scores["ndcg_at_10"] == pytest.approx((1 / log2(3)) / (2 + 1 / log2(3)))
    assert {scores[name] for name in ("answer_em", "answer_f1", "cover_em", "crag", "answer_support_recall")} == {None}
    assert mean_scores([scores]).metrics["mrr"] == 1 / 2


def test_questions_without_judged_documents_have_no_ranking() -> None:
    scores = question_scores("jsonl", "ink", ("ink",), [paragraph(1)], ())
    assert {scores[name] for name in ("ndcg_at_10", "recall_at_5", "recall_at_10", "recall_at_100", "mrr")} == {None}
