"""Plots for docs/benchmarks.md, drawn from the result files: `python -m benchmarks.plots`.

A plot without a result file is left as it is.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

RESULTS = Path(__file__).parent / "results"
PLOTS = Path(__file__).parents[1] / "docs" / "benchmarks"

OWN, OTHERS = "#b5442e", "#7a8794"
"""Colours of cotrail and of the other contenders."""

BenchmarkResult = dict[str, Any]


def main() -> None:
    """Redraw all plots."""
    PLOTS.mkdir(exist_ok=True)
    # Fixed hash salt and no date: the same results give the same file, byte for byte.
    with mpl.rc_context({"svg.hashsalt": "cotrail", "svg.fonttype": "none", "font.size": 9}):
        for name, draw in DRAWN.items():
            path = RESULTS / f"{name}.json"
            if path.exists():
                figure = draw(json.loads(path.read_text()))
                figure.savefig(PLOTS / f"{name}.svg", metadata={"Date": None})


def orchestration(result: BenchmarkResult) -> Figure:
    """Bars of steps per second."""
    return _bars(result["steps_per_second"], "steps a second")


def end_to_end(result: BenchmarkResult) -> Figure:
    """Bars of generations per second."""
    return _bars(result["generations_per_second"], "generations a second", "{:.3f}")


def scaling(result: BenchmarkResult) -> Figure:
    """Steps per second by questions and by workers; memory of cotrail's processes in its longest measurement."""
    figure = Figure(figsize=(10.5, 3.0), layout="constrained")
    by_questions, by_workers, over_time = figure.subplots(1, 3)
    by_workers.sharey(by_questions)
    rows = result["measured"]
    names = dict.fromkeys(row["contender"] for row in rows)
    for name, style in zip(sorted(names, key=lambda each: each != "cotrail"), ("-", "--", "-.", ":"), strict=False):
        own = [row for row in rows if row["contender"] == name]
        asked = [row for row in own if row["questions"] != result["questions_for_workers"]]
        worked = [row for row in own if row["questions"] == result["questions_for_workers"]]
        color = OWN if name == "cotrail" else OTHERS
        _line(by_questions, [(row["questions"], row["steps_per_second"]) for row in asked], name, color, style)
        _line(by_workers, [(row["workers"], row["steps_per_second"]) for row in worked], name, color, style)
    by_questions.set(xscale="log", xlabel="questions, 2 workers", ylabel="steps a second", ylim=(0, None))
    by_workers.set(xscale="log", xlabel=f"workers, on {result['machine']['cores']} cores", ylim=(0, None))
    counts = sorted({row["workers"] for row in rows})
    by_workers.set_xticks(counts, [str(count) for count in counts])
    by_workers.minorticks_off()
    _memory(over_time, max((row for row in rows if "memory_mib" in row), key=lambda row: row["questions"]))
    figure.legend(*by_workers.get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def retrieval(result: BenchmarkResult) -> Figure:
    """Queries per second by concurrent processes, a panel per corpus size."""
    rows = [row for row in result["measured"] if "searched" in row]
    sizes = sorted({row["paragraphs"] for row in rows})
    figure = Figure(figsize=(3.2 * len(sizes) + 1.6, 2.8), layout="constrained")
    panels = figure.subplots(1, len(sizes), squeeze=False)[0]
    for panel, size in zip(panels, sizes, strict=True):
        for number, row in enumerate(each for each in rows if each["paragraphs"] == size):
            points = [(int(n), each["queries_per_second"]) for n, each in row["searched"].items()]
            _line(
                panel, points, row["name"], OWN if row["name"] == "tantivy" else OTHERS, ("-", "--", ":", "-.")[number]
            )
        panel.set(title=f"{size:,} paragraphs", xlabel="processes", ylim=(0, None))
    panels[0].set(ylabel="queries a second")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


DRAWN: dict[str, Callable[[BenchmarkResult], Figure]] = {
    "orchestration": orchestration,
    "scaling": scaling,
    "end_to_end": end_to_end,
    "retrieval": retrieval,
    "retrieval_5_million": retrieval,
}
"""The plots by the names of their result files."""


def _bars(values: dict[str, float], unit: str, shown: str = "{:,.0f}") -> Figure:
    figure = Figure(figsize=(5.4, 0.5 + 0.36 * len(values)), layout="constrained")
    axes = figure.subplots()
    ordered = sorted(values.items(), key=lambda item: item[1])
    names, heights = zip(*ordered, strict=True)
    bars = axes.barh(names, heights, color=[OWN if name == "cotrail" else OTHERS for name in names])
    axes.bar_label(bars, [shown.format(height) for height in heights], padding=3)
    axes.set(xlabel=unit)
    axes.margins(x=0.15)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _memory(axes: Any, row: BenchmarkResult) -> None:
    """Lines of each process's memory in the course of a measurement."""
    held = row["memory_mib"]
    for looks, color, style in [
        *((worker, OWN, "-") for worker in held["workers"]),
        (held["maintenance"], OTHERS, "--"),
    ]:
        answered = [row["questions"] * number / len(looks) for number in range(1, len(looks) + 1)]
        _line(axes, list(zip(answered, looks, strict=True)), "", color, style)
    axes.set(xlabel=f"of {row['questions']:,} questions", ylabel="MiB (dashed: maintenance)", ylim=(0, None))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="x", nbins=4)


def _line(axes: Any, points: Sequence[tuple[float, float]], name: str, color: str, style: str = "-") -> None:
    xs, ys = zip(*sorted(points), strict=True)
    axes.plot(xs, ys, style, marker="o", markersize=3.5, color=color, label=name)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
