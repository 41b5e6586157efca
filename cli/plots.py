"""The numbers behind the report's plots, placed on a canvas; the report's template draws them."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from cotrail.evaluation.metrics.supporting_paragraphs import support_recall
from models.queries.traces import TracedQuestion
from models.schema.tables import QuestionStatus

WIDTH, HEIGHT = 440, 200
LEFT, RIGHT, TOP, BOTTOM = 40, 12, 22, 34
"""The canvas and the room around the plotted area, in SVG units."""


class Mark(Struct, frozen=True, kw_only=True):
    """A point of a line or a bar's top: its place, its label on the axis, and what it stands for."""

    x: float
    y: float
    width: float
    label: str
    value: str


class Plot(Struct, frozen=True, kw_only=True):
    """A plot: marks, and lines across with what they stand for."""

    marks: tuple[Mark, ...]
    grid: tuple[tuple[float, str], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM

    @property
    def line(self) -> str:
        """The marks as points of an SVG polyline."""
        return " ".join(f"{mark.x:.1f},{mark.y:.1f}" for mark in self.marks)


def recall_by_search(questions: Sequence[TracedQuestion]) -> Plot | None:
    """The mean recall of finished questions after each search; one that needs no more searches keeps its recall."""
    finished = [question for question in questions if question.status == QuestionStatus.FINISHED]
    curves = [curve for question in finished if (curve := recall_curve(question))]
    longest = max(map(len, curves), default=0)
    if not longest:
        return None
    columns = [[curve[min(place, len(curve) - 1)] for curve in curves] for place in range(longest)]
    means = [sum(column) / len(column) for column in columns]
    return _plot([(str(place), mean, f"{mean:.0%}") for place, mean in enumerate(means, start=1)], 1.0, percent=True)


def recall_curve(question: TracedQuestion) -> list[float]:
    """The recall of the question's gold paragraphs after each of its searches; empty where it has no gold ones."""
    if not question.gold:
        return []
    searches = [step.sequence for step in question.steps if step.kind == "retrieve" and step.state == "finished"]
    return [
        support_recall([each.paragraph for each in question.collected if each.step <= sequence], question.gold) or 0.0
        for sequence in searches
    ]


def sentences_per_question(questions: Sequence[TracedQuestion]) -> Plot | None:
    """How many questions have so many sentences in their chain."""
    counts = Counter(len(question.sentences) for question in questions)
    longest = max(counts, default=0)
    if not longest:
        return None
    return _plot([(str(n), counts[n], str(counts[n])) for n in range(longest + 1)], max(counts.values()))


def _plot(values: Sequence[tuple[str, float, str]], top: float, *, percent: bool = False) -> Plot:
    slot = (WIDTH - LEFT - RIGHT) / len(values)
    height = HEIGHT - TOP - BOTTOM

    def place(value: float) -> float:
        return HEIGHT - BOTTOM - height * value / top

    marks = tuple(
        Mark(x=LEFT + slot * (i + 0.5), y=place(value), width=min(slot * 0.7, 56), label=label, value=shown)
        for i, (label, value, shown) in enumerate(values)
    )
    lines = [0, top / 2, top] if percent or top % 2 == 0 else [0, top]
    return Plot(marks=marks, grid=tuple((place(v), f"{v:.0%}" if percent else f"{v:g}") for v in lines))
