"""What searches are worth, computed by hand."""

import pytest

from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.questions import GoldParagraph, Hit, ListPlace, Paragraph
from cotrail.core.results import Retrieved
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics.supporting_paragraphs import compared_paragraphs, judged_of
from cotrail.models.queries.traces import Collected, TracedQuestion, TracedStep
from cotrail.services.results.scoring import FOUND, MOST_SEARCHES, _of_search, _rankings

INK, PEN, LAMP = (Paragraph(id=each, title=each, text=f"About {each}.") for each in ("ink", "pen", "lamp"))


def hit(paragraph: Paragraph, rank: int, **places: int) -> Hit:
    lists = tuple(ListPlace(list=name, rank=place, score=1 / place) for name, place in places.items())
    return Hit(paragraph=paragraph, rank=rank, score=1 / rank, lists=lists)


def step(sequence: int, query: str, *hits: Hit) -> TracedStep:
    action = Retrieve(query=query, count=3)
    result = Retrieved(hits=hits)
    return TracedStep(
        sequence=sequence, kind="retrieve", state="finished", worker=None, attempts=1, milliseconds=1.0,
        action=action, result=result,
    )  # fmt: skip


def question(*steps: TracedStep) -> TracedQuestion:
    collected = [Collected(paragraph=each, step=0, query="q", rank=1, score=1.0) for each in (LAMP, INK)]
    gold = tuple(GoldParagraph(title=each.title, text=each.text) for each in (INK, PEN))
    return TracedQuestion(
        key="q", answers=(), gold=gold, pinned=None, kinds={}, status="finished", answer="", text="?", reason=None,
        sentences=(), collected=tuple(collected), steps=steps,
    )  # fmt: skip


def test_each_search_and_each_list_behind_it_is_compared_with_gold() -> None:
    first = step(0, "ink", hit(LAMP, 1, bm25=2), hit(INK, 2, bm25=1, dense=1), hit(PEN, 3, dense=2))
    asked = question(first, step(1, "pen", hit(PEN, 1)))
    rankings = {key: [each.title for each in paragraphs] for key, paragraphs in _rankings(asked)}
    assert rankings == {
        (0, FOUND): ["lamp", "ink"],
        (1, FOUND): ["lamp", "ink", "pen"],
        (1, "bm25"): ["ink", "lamp"],
        (1, "dense"): ["ink", "pen"],
        (2, FOUND): ["pen"],
    }
    judged = judged_of(compared_paragraphs(scoring_of("jsonl"), (LAMP, INK), asked.gold, None))
    scores = _of_search(0, FOUND, [judged])
    assert (scores.search, scores.questions, scores.recall_at_5, scores.mrr) == (None, 1, 0.5, 0.5)
    assert scores.ndcg_at_10 == pytest.approx((1 / 1.584963) / (1 + 1 / 1.584963), abs=1e-5)


def test_more_searches_than_are_told_apart_count_with_the_last() -> None:
    many = question(*(step(number, "ink", hit(INK, 1)) for number in range(MOST_SEARCHES + 5)))
    numbers = [number for (number, _), _ in _rankings(many)]
    assert max(numbers) == MOST_SEARCHES
    assert numbers.count(MOST_SEARCHES) == 6
