"""Charts of a run's report: numbers placed on a canvas, which the report's template draws as SVG."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from cotrail.evaluation.metrics.supporting_paragraphs import support_recall
from models.queries.traces import TracedQuestion
from models.schema.states import QuestionStatus

WIDTH, HEIGHT = 440, 200
LEFT, RIGHT, TOP, BOTTOM = 40, 12, 22, 34
"""The canvas and the room around the plotted area, in SVG units."""


class SvgPoint(Struct, frozen=True, kw_only=True):
    """A point of a line or the top of a bar; label: below it on the axis; value: above it."""

    x: float
    y: float
    width: float
    label: str
    value: str


class SvgChart(Struct, frozen=True, kw_only=True):
    """A chart; grid: the y of each line across, and its label."""

    points: tuple[SvgPoint, ...]
    grid: tuple[tuple[float, str], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM

    @property
    def line(self) -> str:
        """The points of an SVG polyline."""
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


def recall_by_search(questions: Sequence[TracedQuestion]) -> SvgChart | None:
    """The mean recall of finished questions after each search; None where none has gold paragraphs.

    A question with fewer searches keeps its last recall, so that all means are over the same questions.
    """
    finished = [question for question in questions if question.status == QuestionStatus.FINISHED]
    curves = [curve for question in finished if (curve := recall_curve(question))]
    longest = max(map(len, curves), default=0)
    if not longest:
        return None
    columns = [[curve[min(place, len(curve) - 1)] for curve in curves] for place in range(longest)]
    means = [sum(column) / len(column) for column in columns]
    return _chart([(str(place), mean, f"{mean:.0%}") for place, mean in enumerate(means, start=1)], 1.0, percent=True)


def recall_curve(question: TracedQuestion) -> list[float]:
    """The recall of the question's gold paragraphs after each of its searches; empty where it has no gold ones."""
    if not question.gold:
        return []
    searches = [step.sequence for step in question.steps if step.kind == "retrieve" and step.state == "finished"]
    return [
        support_recall([each.paragraph for each in question.collected if each.step <= sequence], question.gold) or 0.0
        for sequence in searches
    ]


def sentences_per_question(questions: Sequence[TracedQuestion]) -> SvgChart | None:
    """A histogram of questions by the sentences of their chain; None where there is none."""
    counts = Counter(len(question.sentences) for question in questions)
    longest = max(counts, default=0)
    if not longest:
        return None
    return _chart([(str(n), counts[n], str(counts[n])) for n in range(longest + 1)], max(counts.values()))


def _chart(values: Sequence[tuple[str, float, str]], top: float, *, percent: bool = False) -> SvgChart:
    slot = (WIDTH - LEFT - RIGHT) / len(values)
    height = HEIGHT - TOP - BOTTOM

    def place(value: float) -> float:
        return HEIGHT - BOTTOM - height * value / top

    points = tuple(
        SvgPoint(x=LEFT + slot * (i + 0.5), y=place(value), width=min(slot * 0.7, 56), label=label, value=shown)
        for i, (label, value, shown) in enumerate(values)
    )
    lines = [0, top / 2, top] if percent or top % 2 == 0 else [0, top]
    return SvgChart(points=points, grid=tuple((place(v), f"{v:.0%}" if percent else f"{v:g}") for v in lines))
