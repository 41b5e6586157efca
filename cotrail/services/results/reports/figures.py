"""Figures of experiments, drawn with matplotlib: the same results give the same bytes."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from textwrap import wrap
from threading import RLock
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cotrail.common.optional_packages import installed_with
from cotrail.errors import InputError
from cotrail.evaluation.experiments.report_tables import Chart, ChartPoint, Panel, Series, Shade

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS: dict[Shade, str] = {"light": "#bfbfbf", "middle": "#e69f00", "strong": "#0072b2"}
"""The palette of Okabe and Ito: distinct for the colour-blind, and in grey by their lightness."""

VALUES: dict[Shade, str] = {"light": "#1a1a1a", "middle": "#1a1a1a", "strong": "#ffffff"}
"""Colours of the numbers in the bars; on a page of any colours, these stay."""

SHAPES: dict[Shade, str] = {"light": "^", "middle": "s", "strong": "o"}
"""Markers of a system's points on a line."""

MARKERS = ("D", "o", "s", "^", "v")
"""Markers of published values, one per model."""

INK, SOFT, GRID, PAPER = "#222222", "#888888", "#e4e4e4", "#fefefe"
"""Colours of what isn't a bar, a line or a number in a bar. Each is used for nothing else: pages replace them by their
own, light or dark (`figures_in_pages`)."""

SLOT = 0.36
"""The width of a bar and its margin, in inches."""
LETTERS, TITLE_LETTERS = 13, 8
"""The letters of a legend that fit an inch, and those of a title that fit an inch of a panel with labels next to it."""
GROUP = 0.84
"""The share of the space between the centres of two groups that their bars take."""

WHISKER: dict[str, Any] = {"fmt": "none", "ecolor": INK, "elinewidth": 0.8, "capsize": 2}
FOOT: dict[str, Any] = {"xytext": (0, 3), "textcoords": "offset points", "ha": "center", "va": "bottom", "fontsize": 7}
LINE: dict[str, Any] = {"markersize": 4, "linewidth": 1.4, "elinewidth": 0.8, "capsize": 2}

LEAST_GROUPS = 2.6
"""The least number of groups that an axis has room for, so that a single one isn't stretched."""

SHORT_LETTERS = 3
"""The letters of labels that have room side by side, such as numbers."""

SLANTED: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}

AXIS_TOP = 104
"""The upper end of every value axis: figures can be compared, and a point of 100 has room."""

COLUMNS = 3
"""The most panels side by side on a page."""

PAGE_PANELS = {1: 4.2, 2: 4.2, 3: 3.4}
"""The width of a panel on a page in inches, by how many stand side by side."""

NOTE_LETTERS = 20
"""The letters of a note that fit an inch."""

UNANSWERED_NOTE = "* Some questions have no answer (yet)."
WHISKERS_NOTE = "Whiskers: 95 % confidence intervals over questions."

LINE_OFFSET = 0.05
"""How far the lines of two systems stand apart, so that equal points and their whiskers are seen."""

LOW_SHARE = 0.08
"""A bar that takes a smaller share of the axis has its number above it."""

_ABSENT = ("xtick.bottom", "ytick.left", "axes.spines.top", "axes.spines.right", "axes.spines.left")

STYLE: dict[Any, Any] = {
    "savefig.dpi": 200,
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9,
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), PAPER),
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys((*_ABSENT, "legend.frameon", "text.parse_math"), False),
    "axes.edgecolor": SOFT,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "cotrail",
}


def write_figure(plot: Chart, directory: Path) -> tuple[Path, Path]:
    """Writes a figure as SVG and PNG; returns the files.

    Raises UnavailableError where matplotlib isn't installed, InputError where the directory can't be written.
    """
    svg, png = directory / f"{plot.name}.svg", directory / f"{plot.name}.png"
    figure = draw(plot)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with drawing_style():
            figure.savefig(svg, metadata=_metadata(plot))
            figure.savefig(png, metadata={"Software": "cotrail", "Title": plot.title})
    except OSError as error:
        raise InputError(f"{directory} can't be written ({error.strerror}); choose another directory") from error
    return svg, png


def write_one(plot: Chart, path: Path, *, width: float) -> None:
    """Writes a figure as one file, SVG or PNG by its name; width: of a panel in inches.

    Raises UnavailableError where matplotlib isn't installed, InputError where the file can't be written or has another
    ending.
    """
    if path.suffix not in (".svg", ".png"):
        raise InputError(f"{path} is neither SVG nor PNG; give it a name that ends with .svg or .png")
    figure = draw(plot, width=width)
    metadata = _metadata(plot) if path.suffix == ".svg" else {"Software": "cotrail", "Title": plot.title}
    try:
        with drawing_style():
            figure.savefig(path, metadata=metadata)
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); choose another file") from error


def svg_of(plot: Chart) -> str:
    """The figure as SVG; raises UnavailableError where matplotlib isn't installed."""
    return _svg(plot, draw(plot))


def columns_on_page(plot: Chart) -> int:
    """How many panels stand side by side on a wide page: so many that its rows are full, as far as possible."""
    panels = len(plot.panels)
    return panels if panels < COLUMNS else 2 if panels % COLUMNS and not panels % 2 else COLUMNS


def panel_svgs(plot: Chart) -> tuple[str, ...]:
    """Each panel as an SVG of its own without title and legend; raises as `svg_of` does.

    A page has room for them side by side or one below the other, at any width.
    """
    width = max(_layout(plot)[0], PAGE_PANELS[columns_on_page(plot)])
    untitled = [replace(panel, title="") for panel in plot.panels]
    return tuple(_svg(plot, draw(replace(plot, panels=(panel,)), width=width, alone=True)) for panel in untitled)


def legend_svgs(plot: Chart) -> tuple[tuple[str, str], ...]:
    """The entries of the legend: each entry's mark as an SVG, and its words; raises as `svg_of` does."""
    with drawing_style():
        from matplotlib.figure import Figure

        entries = []
        for handle in _handles(plot):
            words = str(handle.get_label())
            handle.set_label(" ")
            figure = Figure(figsize=(0.4, 0.2))
            figure.legend(handles=[handle], loc="center", borderpad=0, handletextpad=0)
            entries.append((_svg(plot, figure), words))
    return tuple(entries)


def _svg(plot: Chart, figure: "Figure") -> str:
    buffer = io.StringIO()
    with drawing_style():
        figure.savefig(buffer, format="svg", metadata=_metadata(plot))
    return buffer.getvalue()


def _metadata(plot: Chart) -> dict[str, str | None]:
    """Metadata of an SVG, without a date, so that the same results give the same bytes."""
    return {"Date": None, "Creator": "cotrail", "Title": plot.title}


def draw(plot: Chart, *, width: float | None = None, alone: bool = False) -> "Figure":
    """The figure, not yet written; width: of a panel in inches; alone: without legend and notes."""
    with drawing_style():
        from matplotlib.figure import Figure

        least, columns = _layout(plot)
        width = width or least
        rows, handles = -(-len(plot.panels) // columns), _handles(plot)
        entries = min(len(handles), _entries(handles, width * columns))
        height = 2.6 * rows + (0 if alone else 0.2 * (1 + -(-len(handles) // entries)))
        figure = Figure(figsize=(width * columns, height), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for axes, panel in zip(grid.flat, plot.panels, strict=False):
            # In lines that fit the panel, so that it doesn't run into the next one's.
            lines = [line for part in panel.title.splitlines() for line in wrap(part, int(width * TITLE_LETTERS))]
            axes.set_title("\n".join(lines))
            axes.set_ylim(0, AXIS_TOP)
            axes.set_yticks(range(0, 101, 20))
            axes.set_xlabel(plot.across)
            (_bars if plot.kind == "bars" else _lines)(axes, panel, _marks(plot))
        for axes in grid.flat[len(plot.panels) :]:
            axes.remove()
        for axes in grid[:, 0]:
            axes.set_ylabel(plot.axis)
        if not alone:
            legend: dict[str, Any] = {"ncols": entries, "columnspacing": 1.2, "handletextpad": 0.4}
            figure.legend(handles=handles, loc="outside upper center", **legend)
            figure.supxlabel("\n".join(wrap(" ".join(notes(plot)), int(width * columns * NOTE_LETTERS))), fontsize=7)
    return figure


def notes(plot: Chart) -> tuple[str, ...]:
    """What a reader has to know of the marks."""
    starred = any(label.endswith("*") for panel in plot.panels for label in panel.labels)
    return (UNANSWERED_NOTE,) * starred + (WHISKERS_NOTE,) * plot.has_intervals


_STYLED = RLock()
"""Held while matplotlib's settings are ours: they are the process's, and its threads draw too."""


@contextmanager
def drawing_style() -> Iterator[None]:
    """Within it, matplotlib draws as all figures here are drawn; raises UnavailableError where it isn't installed."""
    with installed_with("reports"):
        import matplotlib
    with _STYLED, matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def _layout(plot: Chart) -> tuple[float, int]:
    """The width of a panel in inches, and how many stand side by side."""
    if plot.kind == "lines":
        return 2.9, min(3, len(plot.panels))
    bars = max(len(panel.labels) * len(_own(panel)) for panel in plot.panels)
    width = max(3.2, 0.8 + SLOT * bars)
    return width, min(max(1, int(9 / width)), len(plot.panels))


def _own(panel: Panel) -> list[Series]:
    return [series for series in panel.series if not series.published]


def _reach(points: Sequence[ChartPoint]) -> list[list[float]]:
    """How far the confidence intervals reach below and above the points."""
    below = [0 if point.low is None else max(point.value - point.low, 0) for point in points]
    above = [0 if point.high is None else max(point.high - point.value, 0) for point in points]
    return [below, above]


def _marks(plot: Chart) -> dict[str, str]:
    """The marker of each model with published values."""
    models = dict.fromkeys(series.published for panel in plot.panels for series in panel.series if series.published)
    return dict(zip(models, cycle(MARKERS)))


def _bars(axes: "Axes", panel: Panel, marks: Mapping[str, str]) -> None:
    """Groups of bars, each with its value in it, and published values as markers on them."""
    systems = [series.system for series in _own(panel)]
    width = GROUP / len(systems)
    for series in panel.series:
        middle = width * (systems.index(series.system) - (len(systems) - 1) / 2)
        for place, point in enumerate(series.points):
            if point and series.published:
                aside = width * 0.22 * (1 if list(marks).index(series.published) % 2 else -1)
                axes.plot(place + middle + aside, point.value, **_marker(marks[series.published], INK))
            elif point:
                axes.bar(place + middle, point.value, width * 0.92, color=COLOURS[series.shade])
                if point.low is not None:
                    _whisker(axes, place + middle, point)
                inside = point.value > LOW_SHARE * AXIS_TOP
                foot = 0 if inside else max(point.value, point.high or 0)
                colour = VALUES[series.shade] if inside else INK
                axes.annotate(f"{point.value:.1f}", (place + middle, foot), color=colour, **FOOT)
    axes.set_xticks(range(len(panel.labels)), panel.labels)
    middle, reach = (len(panel.labels) - 1) / 2, max(len(panel.labels) + 0.2, LEAST_GROUPS) / 2
    axes.set_xlim(middle - reach, middle + reach)


def _whisker(axes: "Axes", place: float, point: ChartPoint) -> None:
    """The confidence interval of a bar, with a rim, so that it is seen within the bar and above it."""
    from matplotlib.patheffects import withStroke

    whisker = axes.errorbar(place, point.value, _reach([point]), **WHISKER)
    for each in (*whisker.lines[1], *whisker.lines[2]):
        each.set_path_effects([withStroke(linewidth=2.4, foreground=PAPER)])


def _lines(axes: "Axes", panel: Panel, marks: Mapping[str, str]) -> None:
    """A line per system over the models, and published values as markers."""
    systems = [series.system for series in _own(panel)]
    for series in panel.series:
        colour, aside = COLOURS[series.shade], LINE_OFFSET * (systems.index(series.system) - (len(systems) - 1) / 2)
        points = [(place + aside, point) for place, point in enumerate(series.points) if point]
        places, values = [place for place, _ in points], [point.value for _, point in points]
        if series.published:
            axes.plot(places, values, **_marker(marks[series.published], colour))
        else:
            reach = _reach([point for _, point in points])
            axes.errorbar(places, values, reach, color=colour, marker=SHAPES[series.shade], **LINE)
    slanted = max(map(len, panel.labels)) > SHORT_LETTERS
    axes.set_xticks(range(len(panel.labels)), panel.labels, **(SLANTED if slanted else {}))
    axes.set_xlim(-0.4, len(panel.labels) - 0.6)


def _marker(shape: str, colour: str) -> dict[str, Any]:
    return {
        "marker": shape,
        "linestyle": "none",
        "markersize": 4.5,
        "markerfacecolor": PAPER,
        "markeredgecolor": colour,
        "markeredgewidth": 1,
        "zorder": 5,
    }


def _handles(plot: Chart) -> "list[Artist]":
    """The entries of the legend: systems, and models with published values."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    systems = {series.system: series.shade for panel in plot.panels for series in _own(panel)}
    own: list[Artist] = [
        Patch(color=COLOURS[shade], label=name)
        if plot.kind == "bars"
        else Line2D([], [], color=COLOURS[shade], marker=SHAPES[shade], markersize=4, label=name)
        for name, shade in systems.items()
    ]
    marks = _marks(plot).items()
    return own + [Line2D([], [], label=f"{model}, published", **_marker(mark, INK)) for model, mark in marks]


def _entries(handles: "Sequence[Artist]", width: float) -> int:
    """How many entries of a legend stand side by side in that width, in inches."""
    longest = max(len(str(each.get_label())) for each in handles)
    return max(1, int(width * LETTERS / (longest + 5)))
