"""The HTML page of an experiment: each figure leads to the runs behind it, in colours of the page."""

import re
from pathlib import Path
from xml.etree import ElementTree

from msgspec.structs import replace

from cotrail.evaluation.experiments.ircot.cells import CellResult
from cotrail.evaluation.experiments.ircot.paper import report as ircot_report
from cotrail.evaluation.experiments.report_tables import ExperimentReport, ReportedRun
from cotrail.evaluation.experiments.rethinking.tables import comparison
from cotrail.services.results.reports.documents import COLOURS, page_figure, report_page, write_report
from cotrail.services.results.reports.figures import PAPER
from cotrail.services.results.reports.sheets import sheet
from tests.unit import test_rethinking_tables as rethinking
from tests.unit.made_results import line, made

SYSTEMS = ("no-retrieval", "one-step", "ircot")


def ircot() -> ExperimentReport:
    results = [
        made(line(system), [0.5, 0.7], demonstration_set=number, stage=stage)
        for system in SYSTEMS
        for number in (1, 2)
        for stage in ("search", "test")
    ]
    return with_runs(ircot_report(results), [each.cell.name for each in results])


def with_runs(report: ExperimentReport, names: list[str]) -> ExperimentReport:
    runs = tuple(
        ReportedRun(name=name, id=f"id-{number}", state="finished", facts=(("seed", "17"), ("digest", "e5" * 32)))
        for number, name in enumerate(names)
    )
    return replace(report, runs=runs, plan=(("files.q.jsonl", "c3" * 32),))


def links(html: str) -> list[str]:
    return re.findall(r'<a href="([^"]+)"', html)


def test_a_value_of_several_runs_leads_to_each_of_them(tmp_path: Path) -> None:
    report = ircot()
    html = write_report("mine", report, tmp_path, runs=True)[0].read_text("utf-8")
    by_name = {run.name: run.page for run in report.runs}
    behind = {name for name in by_name if name.startswith("test/") and "/ircot/" in name}
    readers = html[html.index(">Answer F1 by system and reader (table 4)</h2>") :]
    (row,) = re.findall(r"<tr><td[^>]*>IRCoT</td>.*?</tr>", readers[: readers.index("</section>")])
    assert "60.0 ± 0.0" in row
    assert set(links(row)) == {by_name[name] for name in behind}
    assert len(behind) == 2


def test_every_run_has_its_id_configuration_seed_and_digest_and_each_is_linked(tmp_path: Path) -> None:
    report = ircot()
    html = write_report("mine", report, tmp_path, runs=True)[0].read_text("utf-8")
    for run in report.runs:
        assert f'id="{run.anchor}"' in html
        assert f"run {run.id}, finished" in html
        assert html.count(f'href="{run.page}"') >= 2
    assert html.count("<dt>seed</dt><dd>17</dd>") == html.count("e5" * 32) == len(report.runs)
    assert f"<dt>files.q.jsonl</dt><dd>{'c3' * 32}</dd>" in html


def test_without_pages_of_runs_every_link_stays_on_the_page() -> None:
    html = report_page("mine", ircot())
    assert {link[0] for link in links(html)} == {"#"}
    assert {link[1:] for link in links(html)} <= set(re.findall(r'\bid="([^"]+)"', html))
    assert "cotrail report id-0 --html id-0.html" in html


def test_a_name_of_a_run_in_a_table_leads_to_it_and_may_be_broken_behind_a_slash(tmp_path: Path) -> None:
    chains = rethinking.weighing([("no", 0.1), ("yes", 0.9)])
    run = replace(rethinking.made("rethinking", ["yes"], weighings=[chains], chains=2), id="strategyqa/tiny")
    report = with_runs(comparison([run]), [run.id])
    html = write_report("mine", report, tmp_path, runs=True)[0].read_text("utf-8")
    assert '<td class="t named" data-name="Run"><a href="runs/id-0.html">strategyqa/<wbr>tiny</a></td>' in html
    figure = html[html.index("<figure") : html.index("</figure>")]
    assert set(links(figure)) == {"runs/id-0.html"}
    assert "Commonsense, tiny-1b strategyqa/tiny: rethinking" in figure


def test_figures_have_the_colours_of_the_page_and_none_of_paper() -> None:
    html = report_page("mine", ircot())
    (figure,) = re.findall(r"<figure.*?</figure>", html, re.DOTALL)
    assert not [colour for colour in COLOURS if colour in figure]
    assert "currentColor" in figure
    assert "#0072b2" in figure


def test_each_panel_is_a_drawing_of_its_own_with_the_same_axis() -> None:
    results: list[CellResult] = [
        made(line(system, model=model), [score])
        for model, score in (("small-1b", 0.2), ("large-7b", 0.8))
        for system in SYSTEMS
    ]
    html = report_page("mine", ircot_report(results))
    figure = html[html.index('<figure id="figure-4-answers"') : html.index("</figure>")]
    assert figure.count('<div class="drawing"><p>') == 2
    assert len(re.findall(r">80</text>", figure)) == len(re.findall(r">100</text>", figure)) == 2
    assert re.findall(r"</svg>\s*([^<]+)</span>", figure)[:3] == ["NoR", "OneR", "IRCoT"]
    assert "<p>small-1b, direct reader</p>" in figure


def test_the_contents_lead_to_every_figure_and_table() -> None:
    html = report_page("mine", ircot())
    contents = html[html.index('<nav class="contents"') : html.index("</nav>")]
    ids = set(re.findall(r'\bid="([^"]+)"', html))
    assert {each.removeprefix("#") for each in links(contents)} <= ids
    assert len(links(contents)) >= len(ircot().tables) + len(ircot().plots)


def test_markdown_and_tables_as_text_have_no_links() -> None:
    assert all("href" not in cell for table in ircot().tables for row in sheet(table).rows for cell in row.cells)


def test_the_page_says_what_was_run_and_how_to_run_it_again() -> None:
    subject = "Experiment: protocol ircot; model tiny; questions of hotpotqa. Begun 2026-01-02 00:00 UTC."
    html = report_page("mine", replace(ircot(), subject=subject))
    assert "<title>mine, experiment</title>" in html
    assert f'<p class="lead">{subject}</p>' in html
    assert "<code>cotrail experiment show mine</code>" in html
    assert html.count('<h2 id="runs">Configurations of the runs</h2>') == 1


def test_figures_have_their_styles_as_attributes_since_the_viewer_s_pages_allow_no_others() -> None:
    drawings = [drawing for plot in ircot().plots for _, drawing in page_figure(plot).panels]
    assert drawings
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        assert not [each for each in root.iter() if "style" in each.attrib or each.tag.endswith("}style")]
        texts = [each for each in root.iter() if each.tag.endswith("}text")]
        assert all(each.attrib["fill"] and each.attrib["font-size"].endswith("px") for each in texts)
        assert {each.attrib["fill"] for each in root.iter() if each.tag.endswith("}path") and "fill" in each.attrib} > {
            "none",
            COLOURS[PAPER],
        }
