"""Charts of a run's report: numbers placed on a canvas, which the report's template draws as SVG."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics.supporting_paragraphs import support_scores
from cotrail.models.queries.traces import TracedQuestion
from cotrail.models.schema.states import QuestionStatus

WIDTH, BROAD, HEIGHT = 440, 920, 200
LEFT, RIGHT, TOP, BOTTOM = 40, 12, 22, 34
"""The canvas, of half a line or of a whole one, and the room around the plotted area, in SVG units."""


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


def recall_by_search(questions: Sequence[TracedQuestion], dataset: str, *, broad: bool = False) -> SvgChart | None:
    """The mean paragraph recall of finished questions after each search; None where no question searches twice.

    Searches that are made at once count as one. A question with fewer searches keeps its last recall, so that all means
    are over the same questions. broad: for a whole line of a wide page.
    """
    finished = [question for question in questions if question.status == QuestionStatus.FINISHED]
    curves = [curve for question in finished if (curve := recall_curve(question, dataset))]
    longest = max(map(len, curves), default=0)
    if longest < 2:
        return None
    columns = [[curve[min(place, len(curve) - 1)] for curve in curves] for place in range(longest)]
    means = [sum(column) / len(column) for column in columns]
    points = [(str(place), mean, f"{mean:.0%}") for place, mean in enumerate(means, start=1)]
    return _chart(points, 1.0, percent=True, width=BROAD if broad else WIDTH)


def recall_curve(question: TracedQuestion, dataset: str) -> list[float]:
    """The question's paragraph recall after each of its searches; empty where it has no gold paragraphs.

    Searches that are made at once have one place.
    """
    searches = [step for step in question.steps if step.query is not None and step.state == "finished"]
    last = {step.batch or step.sequence: step.sequence for step in searches}
    scores = [
        support_scores(
            scoring_of(dataset),
            [each.paragraph for each in question.collected if each.step <= sequence],
            question.gold,
            question.pinned,
        )
        for sequence in last.values()
    ]
    return [each.recall for each in scores if each]


def sentences_per_question(questions: Sequence[TracedQuestion], *, broad: bool = False) -> SvgChart | None:
    """A histogram of questions by the sentences of their chain, without bars where there is no question.

    None where there is no sentence. broad: for a whole line of a wide page.
    """
    counts = Counter(len(question.sentences) for question in questions)
    longest = max(counts, default=0)
    if not longest:
        return None
    values = [(str(n), counts[n], f"{counts[n]}" if n in counts else "") for n in range(min(counts), longest + 1)]
    return _chart(values, max(counts.values()), width=BROAD if broad else WIDTH)


def lengths(counts: Mapping[int, int], *, broad: bool = False) -> SvgChart | None:
    """A histogram of questions by how many steps they have; None where there is none."""
    if not counts:
        return None
    values = [(str(n), counts[n], f"{counts[n]}") for n in sorted(counts)]
    return _chart(values, max(counts.values()), width=BROAD if broad else WIDTH)


def _chart(values: Sequence[tuple[str, float, str]], top: float, *, width: int, percent: bool = False) -> SvgChart:
    slot = (width - LEFT - RIGHT) / len(values)
    height = HEIGHT - TOP - BOTTOM

    def place(value: float) -> float:
        return HEIGHT - BOTTOM - height * value / top

    points = tuple(
        SvgPoint(x=LEFT + slot * (i + 0.5), y=place(value), width=min(slot * 0.7, 56), label=label, value=text)
        for i, (label, value, text) in enumerate(values)
    )
    lines = [0, top / 2, top] if percent or top % 2 == 0 else [0, top]
    grid = tuple((place(v), f"{v:.0%}" if percent else f"{v:g}") for v in lines)
    return SvgChart(points=points, grid=grid, width=width, right=width - RIGHT)
