"""A comparison as one HTML page, with its figures."""

import io
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cotrail import __version__
from cotrail.common.humanize import moment
from cotrail.common.printable_text import cut
from cotrail.errors import InputError
from cotrail.services.results.compared_questions import DifferingQuestion
from cotrail.services.results.comparing import MOST_TRACED
from cotrail.services.results.comparison import ComparedPair, ComparedRun, Comparison, CostFront, Measure
from cotrail.services.results.comparison_tables import comparison_tables
from cotrail.services.results.comparison_words import HAS, design, headline, pair_sentence, pair_sentences, shown_score
from cotrail.services.results.reports.documents import page_drawing
from cotrail.services.results.reports.figures import COLOURS, INK, PAPER, SOFT, drawing_style
from cotrail.services.results.reports.pages import page
from cotrail.services.results.reports.sheets import sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Figures of a comparison: quality against cost with its Pareto front, and differences with their intervals.

FORMATS = (".svg", ".png", ".pdf")
"""The endings of files that figures are written to."""

AXES: dict[Measure, str] = {
    "dollars": "US dollars a question",
    "tokens": "tokens a question, read and written",
    "seconds": "seconds of steps a question",
}

WIDE_RANGE = 20
"""How many times the least cost the most is where the axis is logarithmic."""

LABEL_LETTERS = 28

POINT: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 6, "elinewidth": 0.8, "capsize": 2}
LABEL: dict[str, Any] = {"xytext": (6, 5), "textcoords": "offset points", "fontsize": 7.5}


def write_front(comparison: Comparison, path: Path) -> None:
    """Write quality against cost as a figure.

    Raises InputError where no two runs have both, or the file can't be written, UnavailableError without matplotlib.
    """
    if path.suffix not in FORMATS:
        raise InputError(f"{path} is no figure's file; let it end with {', '.join(FORMATS)}")
    if comparison.front is None:
        raise InputError("no two runs have both a score and a cost yet, so there is no figure; wait for them")
    try:
        _save(_front(comparison, comparison.front), path, path.suffix.removeprefix("."))
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); choose another --figure") from error


def _on_page(figure: "Figure", name: str) -> str:
    buffer = io.StringIO()
    _save(figure, buffer, "svg")
    return page_drawing(buffer.getvalue(), name)


def _save(figure: "Figure", target: Any, form: str) -> None:
    """Write a figure without a date, so that the same comparison gives the same bytes."""
    dates = {"svg": "Date", "pdf": "CreationDate"}
    with drawing_style():
        figure.savefig(target, format=form, metadata={dates[form]: None} if form in dates else {})


def _front(comparison: Comparison, front: CostFront) -> "Figure":
    with drawing_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.6, 3.6), layout="constrained")
        axes = figure.subplots()
        places = [(cost, _scaled(quality, comparison)) for cost, quality in (front.points[run] for run in front.front)]
        axes.step(
            *zip(*places, strict=True),
            where="post",
            color=COLOURS["strong"],
            linewidth=1,
            linestyle=(0, (4, 3)),
            zorder=1,
        )
        for run in comparison.runs:
            if run.id in front.points:
                _point(axes, comparison, run, front)
        axes.margins(x=0.18, y=0.12)
        costs = [cost for cost, _ in front.points.values()]
        if min(costs) > 0 and max(costs) / min(costs) > WIDE_RANGE:
            axes.set_xscale("log")
        else:
            axes.set_xlim(0, axes.get_xlim()[1])
            axes.xaxis.set_major_formatter("{x:,g}")
        axes.set_xlabel(AXES[front.measure])
        axes.set_ylabel(comparison.primary.title)
    return figure


def _point(axes: "Axes", comparison: Comparison, run: ComparedRun, front: CostFront) -> None:
    cost, quality = front.points[run.id]
    interval, value = run.scores[comparison.primary.name].interval, _scaled(quality, comparison)
    reach = None
    if interval:
        low, high = (_scaled(end, comparison) for end in (interval.low, interval.high))
        reach = [[max(value - low, 0)], [max(high - value, 0)]]
    colour = COLOURS["strong"] if run.id in front.front else SOFT
    axes.errorbar([cost], [value], yerr=reach, color=colour, markeredgecolor=PAPER, **POINT)
    axes.annotate(_name(run), (cost, value), color=INK, **LABEL)


def _differences(comparison: Comparison) -> "Figure":
    with drawing_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.6, 0.7 + 0.36 * len(comparison.pairs)), layout="constrained")
        axes = figure.subplots()
        axes.axvline(0, color=SOFT, linewidth=1)
        for place, pair in enumerate(comparison.pairs):
            difference = pair.differences[comparison.primary.name]
            colour = COLOURS["strong"] if difference.finding == "shown" else SOFT
            if interval := difference.interval:
                ends = [_scaled(end, comparison) for end in (interval.low, interval.high)]
                axes.plot(ends, [place, place], color=colour, linewidth=2, solid_capstyle="butt")
            if difference.mean is not None:
                axes.plot([_scaled(difference.mean, comparison)], [place], marker="o", markersize=6, color=colour)
        labels = [
            f"{_name(comparison.run(pair.first))} less {_name(comparison.run(pair.second))}"
            for pair in comparison.pairs
        ]
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.grid(axis="x")
        axes.set_xlabel(f"{comparison.primary.title}, difference{'' if comparison.primary.is_count else ' in points'}")
    return figure


def _scaled(value: float, comparison: Comparison) -> float:
    return value if comparison.primary.is_count else 100 * value


def _name(run: ComparedRun) -> str:
    """The run's name on one line, short enough for a figure."""
    return cut(run.name, LABEL_LETTERS)


MOST_LISTED = 200
"""The questions of an outcome whose ids are listed."""


class ListedOutcome(Struct, frozen=True, kw_only=True):
    """The questions that a run answered better than another.

    questions: how many; shown: those with their traces; others: ids of the rest, as far as they are listed.
    """

    name: str
    questions: int
    shown: tuple[DifferingQuestion, ...]
    others: tuple[str, ...]


class ListedPair(Struct, frozen=True, kw_only=True):
    """A pair of runs by id and by name, what is shown of it, and its questions."""

    ids: tuple[str, str]
    first: str
    second: str
    sentence: str
    ties: int
    outcomes: tuple[ListedOutcome, ...]


def comparison_page(comparison: Comparison) -> str:
    """The page; raises UnavailableError where matplotlib isn't installed."""
    return page(
        "comparison.html",
        **comparison_values(comparison),
        **comparison_figures(comparison),
        links={},
        now=moment(datetime.now()),
        version=__version__,
    )


def comparison_values(comparison: Comparison, *, most: int = MOST_TRACED) -> dict[str, Any]:
    """What every page of a comparison says; most: the questions that are shown of each outcome of a pair."""
    return {
        "comparison": comparison,
        "headline": headline(comparison),
        "sentences": pair_sentences(comparison),
        "design": list(design(comparison)),
        "sheets": [sheet(table) for table in comparison_tables(comparison)],
        "pairs": [_listed(comparison, pair, most) for pair in comparison.pairs],
        "has": HAS[comparison.primary.is_count],
        "score": lambda value: shown_score(value, comparison),
    }


def comparison_figures(comparison: Comparison) -> dict[str, str]:
    """Its figures as SVG in a page's colours; the front is empty where no two runs have both quality and cost.

    Raises UnavailableError where matplotlib isn't installed.
    """
    front = _on_page(_front(comparison, comparison.front), "front") if comparison.front else ""
    return {"front": front, "differences": _on_page(_differences(comparison), "differences")}


def _listed(comparison: Comparison, pair: ComparedPair, most: int) -> ListedPair:
    first, second = (comparison.run(run_id).name for run_id in (pair.first, pair.second))
    won = [each for each in pair.shown if each.is_win][:most]
    lost = [each for each in pair.shown if not each.is_win][:most]
    return ListedPair(
        ids=(pair.first, pair.second),
        first=first,
        second=second,
        sentence=pair_sentence(comparison, pair),
        ties=len(pair.outcomes.ties),
        outcomes=(_outcome(first, pair.outcomes.wins, won), _outcome(second, pair.outcomes.losses, lost)),
    )


def _outcome(name: str, keys: Sequence[str], shown: Sequence[DifferingQuestion]) -> ListedOutcome:
    shown_keys = {each.key for each in shown}
    others = tuple(key for key in keys if key not in shown_keys)
    return ListedOutcome(name=name, questions=len(keys), shown=tuple(shown), others=others[:MOST_LISTED])
