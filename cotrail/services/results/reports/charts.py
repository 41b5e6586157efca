"""Charts of a run's report, numbers on a canvas that the template draws as SVG, and the causes of its wrong answers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill

from msgspec import Struct

from cotrail.common.humanize import percent
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.causes.cause import Cause, CauseCount, Explanation, cause_counts
from cotrail.evaluation.experiments.report_tables import Chart, Panel, Series, point_of_share
from cotrail.evaluation.metrics.confidence_intervals import share_interval
from cotrail.evaluation.metrics.supporting_paragraphs import support_scores
from cotrail.models.queries.traces import TracedQuestion
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.results.causes import RunErrors
from cotrail.services.results.reports.figures import write_one

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
    points = [(str(place), mean, percent(mean, 0)) for place, mean in enumerate(means, start=1)]
    return _chart(points, 1.0, shares=True, width=BROAD if broad else WIDTH)


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


def _chart(values: Sequence[tuple[str, float, str]], top: float, *, width: int, shares: bool = False) -> SvgChart:
    slot = (width - LEFT - RIGHT) / len(values)
    height = HEIGHT - TOP - BOTTOM

    def place(value: float) -> float:
        return HEIGHT - BOTTOM - height * value / top

    points = tuple(
        SvgPoint(x=LEFT + slot * (i + 0.5), y=place(value), width=min(slot * 0.7, 56), label=label, value=text)
        for i, (label, value, text) in enumerate(values)
    )
    lines = [0, top / 2, top] if shares or top % 2 == 0 else [0, top]
    grid = tuple((place(v), percent(v, 0) if shares else f"{v:g}") for v in lines)
    return SvgChart(points=points, grid=grid, width=width, right=width - RIGHT)


# Bars below each other, each with its name and its number.

ROOM = 70
"""The room for a number right of the longest bar, in SVG units."""

THICK = 16
"""How high a bar is."""

SHORTEST = 1.5
"""The length of a bar that would be too short to be seen."""


class _Canvas(Struct, frozen=True, kw_only=True):
    """What bars are drawn on; left: the room for their names, above them where it is 0; row: the height of a row."""

    width: int
    left: int
    row: int


BROAD_CANVAS, TIGHT_CANVAS = _Canvas(width=920, left=170, row=24), _Canvas(width=320, left=0, row=44)
"""The canvases of a wide screen and of a telephone."""


class Measured(Struct, frozen=True, kw_only=True):
    """What a bar stands for; value: its number in words; interval: its ends; kind: a name for the style sheet."""

    name: str
    size: float
    value: str
    interval: tuple[float, float] | None = None
    kind: str = ""

    @property
    def ends(self) -> tuple[float, float]:
        """Of its interval, or its own."""
        return self.interval or (self.size, self.size)


class NamedBar(Struct, frozen=True, kw_only=True):
    """A bar of a drawing: where its name and itself are, how long it is, and the ends of its interval."""

    of: Measured
    named: float
    y: float
    length: float
    low: float
    high: float


class BarDrawing(Struct, frozen=True, kw_only=True):
    """Bars for a width of the screen: names end left of them, or begin above them where there is no room."""

    width: int
    height: int
    left: int
    bars: tuple[NamedBar, ...]


class Bars(Struct, frozen=True, kw_only=True):
    """A figure of bars; words: the same for those who can't see it."""

    title: str
    words: str
    rows: tuple[Measured, ...]

    @property
    def broad(self) -> BarDrawing:
        """The figure on a wide screen."""
        return _drawn(self.rows, BROAD_CANVAS)

    @property
    def tight(self) -> BarDrawing:
        """The figure on a telephone."""
        return _drawn(self.rows, TIGHT_CANVAS)


def _drawn(rows: Sequence[Measured], canvas: _Canvas) -> BarDrawing:
    scale = (canvas.width - canvas.left - ROOM) / max(each.ends[1] for each in rows)
    bars = tuple(_bar(each, canvas.row * place, scale, canvas) for place, each in enumerate(rows))
    return BarDrawing(width=canvas.width, height=canvas.row * len(bars), left=canvas.left, bars=bars)


def _bar(each: Measured, top: float, scale: float, canvas: _Canvas) -> NamedBar:
    length, (low, high) = max(each.size * scale, SHORTEST), each.ends
    return NamedBar(
        of=each,
        named=top + THICK,
        y=top + canvas.row - THICK - 4,
        length=length,
        low=canvas.left + low * scale,
        high=canvas.left + max(high * scale, length),
    )


class ReportedCauses(Struct, frozen=True, kw_only=True):
    """The causes that apply to any wrong answer, as rows and a figure; wrong: the number of wrong answers.

    signed: whether it is known to how many answers a cause applies in addition to those whose cause it is.
    """

    wrong: int
    rows: tuple[CauseCount, ...]
    signed: bool = True

    @property
    def bars(self) -> Bars:
        """Their shares with their intervals."""
        return Bars(
            title=f"Share of the {self.wrong:,} wrong answers by cause, with 95 % intervals",
            words="Share of the wrong answers by cause",
            rows=tuple(map(_measured, self.rows)),
        )


def _measured(each: CauseCount) -> Measured:
    interval = (each.interval.low, each.interval.high) if each.interval else None
    return Measured(name=each.cause, size=each.share, value=percent(each.share, 0), interval=interval)


def reported_causes(explanations: Sequence[Explanation]) -> ReportedCauses | None:
    """The causes of these wrong answers; None where there is none."""
    rows = tuple(each for each in cause_counts(explanations) if each.signs)
    if not rows:
        return None
    return ReportedCauses(wrong=len(explanations), rows=rows)


def counted_causes(counts: Mapping[str, int]) -> ReportedCauses | None:
    """The same of causes that are only counted, by their slugs: without the signs of others."""
    wrong = sum(counts.values())
    if not wrong:
        return None
    rows = tuple(_counted(cause, counts[cause.slug], wrong) for cause in Cause if counts.get(cause.slug))
    return ReportedCauses(wrong=wrong, rows=rows, signed=False)


def _counted(cause: Cause, number: int, wrong: int) -> CauseCount:
    interval = share_interval(number, wrong)
    return CauseCount(cause=cause, questions=number, share=number / wrong, interval=interval, signs=0)


FIGURE_WIDTH = 7.5
"""Inches, in which the names of all causes have room."""
LETTERS = 12
"""The most letters in a line below a bar."""


def write_cause_figure(errors: RunErrors, path: Path) -> None:
    """Writes the shares of the causes as SVG or PNG; raises what `write_one` does."""
    write_one(cause_chart(errors), path, width=FIGURE_WIDTH)


def cause_chart(errors: RunErrors) -> Chart:
    """A bar for the share of each cause, with its confidence interval."""
    wrong = errors.outcomes["wrong"]
    points = tuple(point_of_share(each.questions, wrong) for each in errors.causes)
    labels = tuple(fill(each.cause, LETTERS) for each in errors.causes)
    series = Series(system=f"{errors.system} on {errors.dataset}", shade="strong", points=points)
    return Chart(
        name="causes",
        title=f"Causes of {wrong:,} wrong answers",
        axis="% of the wrong answers",
        kind="bars",
        panels=(Panel(title="", labels=labels, series=(series,)),),
    )
