import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cotrail.errors import InputError
from cotrail.evaluation.experiments.ircot.cells import CellResult
from cotrail.evaluation.experiments.ircot.paper import build_charts
from cotrail.evaluation.experiments.ircot.paper import report as ircot_report
from cotrail.evaluation.experiments.report_tables import Chart
from cotrail.evaluation.metrics.confidence_intervals import confidence_interval
from cotrail.services.results.reports import documents
from cotrail.services.results.reports.documents import write_report
from cotrail.services.results.reports.figures import AXIS_TOP, PAPER, draw, write_figure
from cotrail.systems.parts.reading import Reader
from tests.cases import each_case
from tests.unit.made_results import line, made

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

SYSTEMS: tuple[str, ...] = ("no-retrieval", "one-step", "ircot")


def plot(results: Sequence[CellResult], number: int) -> Chart:
    (found,) = (each for each in build_charts(results) if each.name.startswith(f"figure-{number}-"))
    return found


def heights(axes: "Axes") -> list[float]:
    from matplotlib.container import BarContainer

    return [bar.get_height() for bars in axes.containers if isinstance(bars, BarContainer) for bar in bars.patches]


def ticks(axes: "Axes") -> list[str]:
    return [label.get_text() for label in axes.get_xticklabels()]


def legend(figure: "Figure") -> list[str]:
    (found,) = figure.legends
    return [text.get_text() for text in found.get_texts()]


def marks(axes: "Axes") -> list[float]:
    """The heights of marks that no line joins: published values."""
    return [_heights(each)[0] for each in axes.lines if each.get_linestyle() == "None" and _is_open(each)]


def _is_open(mark: "Line2D") -> bool:
    return bool(mark.get_markerfacecolor() == PAPER)


def _heights(drawn: "Line2D") -> tuple[float, ...]:
    return tuple(float(height) for height in np.asarray(drawn.get_ydata()))


@pytest.fixture
def answers() -> list[CellResult]:
    """F1 on two datasets with two demonstration sets: 20 and 40 points for NoR, 10 points more for each system on."""
    return [
        made(line(system, dataset=dataset), [base + 0.1 * i + 0.02 * (-1) ** number], demonstration_set=number)
        for dataset, base in (("hotpotqa", 0.2), ("musique", 0.4))
        for i, system in enumerate(SYSTEMS)
        for number in (1, 2)
    ]


def test_a_bar_is_as_high_as_the_mean_over_the_demonstration_sets(answers: list[CellResult]) -> None:
    (axes,) = draw(plot(answers, 4)).axes
    assert heights(axes) == pytest.approx([20, 40, 30, 50, 40, 60])
    assert ticks(axes) == ["HotpotQA", "MuSiQue"]
    assert [text.get_text() for text in axes.texts] == ["20.0", "40.0", "30.0", "50.0", "40.0", "60.0"]
    assert axes.get_ylabel() == "Answer F1"
    assert axes.get_title() == "tiny-1b, direct reader"


def whiskers(axes: "Axes") -> list[tuple[float, float]]:
    from matplotlib.container import ErrorbarContainer

    drawn = [each.lines[2][0].get_segments()[0] for each in axes.containers if isinstance(each, ErrorbarContainer)]
    return [(low[1], high[1]) for low, high in drawn]


def test_error_bars_are_the_confidence_interval_of_the_questions_means_over_the_sets() -> None:
    scores = [0.2, 0.4, 0.9, 0.7]
    sets = [
        made(line(), [each + 0.02 * (-1) ** number for each in scores], demonstration_set=number) for number in (1, 2)
    ]
    figure = draw(plot(sets, 4))
    expected = confidence_interval(scores)
    assert expected is not None
    assert whiskers(figure.axes[0]) == [pytest.approx((100 * expected.low, 100 * expected.high))]
    assert "95 % confidence intervals over questions" in figure.get_supxlabel()


def test_every_value_axis_is_the_same(answers: list[CellResult]) -> None:
    low = [made(line(goal="retrieval"), [0.01, 0.02])]
    assert {draw(each).axes[0].get_ylim() for each in (*build_charts(answers), *build_charts(low))} == {(0, AXIS_TOP)}


def test_published_values_are_marks_at_their_heights(answers: list[CellResult]) -> None:
    figure = draw(plot(answers, 4))
    assert legend(figure) == ["NoR", "OneR", "IRCoT", "Flan-T5-XXL, published", "GPT3, published"]
    assert marks(figure.axes[0]) == pytest.approx(
        [25.3, 13.7, 49.7, 25.8, 59.1, 30.8, 41.0, 19.0, 50.7, 20.4, 60.6, 36.0]
    )
    assert figure.axes[0].get_ylim()[1] > 60.6


def test_recall_has_a_panel_a_model_and_nothing_published() -> None:
    results = [
        made(line(system, goal="retrieval", model=model), [0.5])
        for model in ("small-1b", "large-7b")
        for system in SYSTEMS[1:]
    ]
    figure = draw(plot(results, 3))
    assert [axes.get_title() for axes in figure.axes] == ["small-1b", "large-7b"]
    assert legend(figure) == ["OneR", "IRCoT"]
    assert [marks(axes) for axes in figure.axes] == [[], []]


@each_case(("number", "goal"), [(5, "retrieval"), (6, "qa")])
def test_pairs_are_named_as_in_the_paper(number: int, goal: Any) -> None:
    pairs = [("musique", "hotpotqa"), ("hotpotqa", "2wikimultihopqa"), ("hotpotqa", "hotpotqa")]
    results = [made(line(goal=goal, demonstrations=x, dataset=y), [0.5]) for x, y in pairs]
    (axes,) = draw(plot(results, number)).axes
    assert ticks(axes) == ["HQ→2W", "MQ→HQ"]


def test_untrue_chains_are_a_percentage_of_the_annotated_ones() -> None:
    marked = {"q0": True, "q1": False, "q2": False, "q3": False}
    elsewhere = line(dataset="musique", demonstrations="hotpotqa")
    results = [made(each, [0.5] * 4, factual_errors=marked) for each in (line(), elsewhere)]
    (axes,) = draw(plot(results, 7)).axes
    assert heights(axes) == [25]
    assert ticks(axes) == ["HotpotQA"]


def test_models_stand_by_their_size_with_the_published_ones_among_them() -> None:
    results = [
        made(line(system, model=model), [score])
        for model, score in (("mid-7b", 0.6), ("google/flan-t5-xxl", 0.7), ("small-135m", 0.2))
        for system in SYSTEMS
    ]
    (axes,) = draw(plot(results, 9)).axes
    assert ticks(axes) == ["small-135m", "mid-7b", "google/flan-t5-xxl (11B)", "GPT3 (175B)"]
    lines = {_heights(each) for each in axes.lines if each.get_linestyle() == "-"}
    assert lines == {(20, 60, 70)}
    assert sorted(marks(axes)) == pytest.approx([49.7, 50.7, 59.1, 60.6])
    assert axes.get_title() == "HotpotQA, direct reader"


def test_models_that_each_have_a_reader_of_their_own_share_a_curve_as_in_the_paper() -> None:
    read_by: dict[str, Reader] = {"flan-t5-xl": "direct", "gpt3": "cot"}
    results = [
        made(line(system, model=model, reader=reader), [score])
        for (model, reader), score in zip(read_by.items(), (0.3, 0.6), strict=True)
        for system in SYSTEMS[1:]
    ]
    (axes,) = draw(plot(results, 9)).axes
    assert ticks(axes) == ["flan-t5-xl (3B), direct", "Flan-T5-XXL (11B), direct", "gpt3 (175B), CoT"]
    assert {_heights(each) for each in axes.lines if each.get_linestyle() == "-"} == {(30, 60)}
    assert sorted(marks(axes)) == pytest.approx([49.7, 53.6, 59.1, 60.7])
    assert axes.get_title() == "HotpotQA"
    bars = draw(plot(results, 4)).axes
    assert [axes.get_title() for axes in bars] == ["flan-t5-xl, direct reader", "gpt3, CoT reader"]


def test_where_a_model_has_several_readers_each_reader_has_a_panel() -> None:
    used: list[tuple[str, Reader]] = [("flan-t5-xl", "direct"), ("gpt3", "direct"), ("gpt3", "cot")]
    drawn = draw(plot([made(line(model=model, reader=reader), [0.5]) for model, reader in used], 9))
    assert [axes.get_title() for axes in drawn.axes] == ["HotpotQA, direct reader", "HotpotQA, CoT reader"]
    assert ticks(drawn.axes[1]) == ["Flan-T5-XXL (11B)", "gpt3 (175B)"]


def test_models_of_unknown_size_stand_in_the_experiments_order() -> None:
    results = [made(line(goal="retrieval", model=model), [0.5]) for model in ("zeta", "alpha-7b")]
    (axes,) = draw(plot(results, 8)).axes
    assert ticks(axes) == ["zeta", "alpha-7b"]


def test_a_single_model_makes_no_curve(answers: list[CellResult]) -> None:
    assert [each.name for each in build_charts(answers)] == ["figure-4-answers"]


def test_search_runs_are_in_no_figure() -> None:
    assert build_charts([made(line(), [0.5], stage="search")]) == ()


def test_unanswered_questions_are_marked() -> None:
    figure = draw(plot([made(line(), [0.5, 0.0], finished=1)], 4))
    assert ticks(figure.axes[0]) == ["HotpotQA *"]
    assert figure.get_supxlabel().startswith("* Some questions have no answer")


def test_scores_of_zero_are_drawn() -> None:
    (axes,) = draw(plot([made(line(goal="retrieval", dataset="mine"), [0.0])], 3)).axes
    assert heights(axes) == [0]


def test_figures_are_written_as_svg_with_text_and_as_png(answers: list[CellResult], tmp_path: Path) -> None:
    svg, png = write_figure(build_charts(answers)[0], tmp_path / "new" / "figures")
    assert (svg.name, png.name) == ("figure-4-answers.svg", "figure-4-answers.png")
    drawn = ET.parse(svg).getroot()
    texts = {text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert {"HotpotQA", "MuSiQue", "IRCoT", "GPT3, published", "Answer F1", "60.0"} <= texts
    assert png.read_bytes().startswith(b"\x89PNG\r\n")


def test_the_same_results_give_the_same_bytes_at_the_same_time(
    answers: list[CellResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "moment", lambda _: "now")
    first, second = (write_report("mine", ircot_report(answers), tmp_path / name) for name in ("a", "b"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_the_page_holds_all_and_needs_no_other_file(tmp_path: Path) -> None:
    results = [made(line(system, goal=goal), [0.5]) for goal in ("retrieval", "qa") for system in SYSTEMS[1:]]
    page, text, *figures = write_report("my <experiment>", ircot_report(results), tmp_path)
    html = page.read_text("utf-8")
    assert "my &lt;experiment&gt;" in html
    assert html.count('<div class="drawing">') == 2
    assert not re.findall(r'(?:src|href)="(?!#)', re.sub(r"<metadata>.*?</metadata>", "", html, flags=re.DOTALL))
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(|xlink:href=")#([^")]+)', html)) <= set(ids)
    assert "published, table 4" in html
    images = re.findall(r"!\[.*?\]\((.+?)\)", text.read_text("utf-8"))
    assert {tmp_path / image for image in images} == {path for path in figures if path.suffix == ".svg"}


def test_a_directory_that_cannot_be_made_is_refused(answers: list[CellResult], tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("", "utf-8")
    with pytest.raises(InputError, match="choose another"):
        write_report("mine", ircot_report(answers), taken)
    with pytest.raises(InputError, match="choose another"):
        write_report("mine", ircot_report([]), taken)
