"""The charts of a run's report."""

from msgspec.structs import replace

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.models.queries.traces import Collected, TracedQuestion
from cotrail.services.results.reports.charts import recall_by_search, recall_curve, sentences_per_question
from tests.unit import made_runs


def question(*found: tuple[int, str], gold: tuple[str, ...], searches: int = 2, sentences: int = 1) -> TracedQuestion:
    """A question that found paragraphs of these texts at these steps."""
    collected = (
        Collected(paragraph=Paragraph(id=text, title="T", text=text), step=step, query="", rank=1, score=1.0)
        for step, text in found
    )
    return made_runs.question(
        gold=tuple(GoldParagraph(title="T", text=text) for text in gold),
        sentences=("s",) * sentences,
        collected=tuple(collected),
        steps=tuple(made_runs.search(number) for number in range(searches)),
    )


def test_the_recall_curve_grows_with_each_search() -> None:
    assert recall_curve(question((0, "a"), (1, "b"), gold=("a", "b")), "jsonl") == [0.5, 1.0]
    assert recall_curve(question((0, "a"), gold=()), "jsonl") == []


def test_searches_that_are_made_at_once_count_as_one() -> None:
    asked = question((0, "a"), (1, "b"), (2, "c"), gold=("a", "b", "c", "d"), searches=3)
    first, second, third = asked.steps
    together = (replace(first, batch="x"), replace(second, batch="x"), replace(third, batch="y"))
    assert recall_curve(replace(asked, steps=together), "jsonl") == [0.5, 0.75]
    at_once = tuple(replace(each, batch="x") for each in asked.steps)
    assert recall_by_search([replace(asked, steps=at_once)], "jsonl") is None


def test_a_question_that_stopped_keeps_its_recall_in_the_mean() -> None:
    plot = recall_by_search(
        [question((0, "a"), gold=("a",), searches=1), question((1, "a"), gold=("a",)), question(gold=())], "jsonl"
    )
    assert plot is not None
    assert [mark.value for mark in plot.points] == ["50 %", "100 %"]
    assert plot.points[0].y > plot.points[1].y


def test_without_gold_or_sentences_there_is_nothing_to_plot() -> None:
    assert recall_by_search([question(gold=())], "jsonl") is None
    assert recall_by_search([], "jsonl") is None
    assert sentences_per_question([question(gold=(), sentences=0)]) is None


def test_sentences_are_counted_by_question() -> None:
    plot = sentences_per_question([question(gold=(), sentences=n) for n in (1, 3, 3)])
    assert plot is not None
    assert [(mark.label, mark.value) for mark in plot.points] == [("1", "1"), ("2", ""), ("3", "2")]
