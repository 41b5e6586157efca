"""Tables with more columns than a page is broad: all of them are reached on a screen, and stand on paper."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from cotrail.evaluation.experiments.report_tables import Column, ReportTable, TableRow
from cotrail.services.results.reports.pages import environment, report_style
from cotrail.services.results.reports.sheets import sheet

pytest.importorskip("playwright", reason="Playwright isn't installed")

from tests.browser.chromium import BINARY, launched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCORES = [f"metric {number}" for number in range(27)]
NAME = "searchain/hotpotqa/a model of many words/first seed"
TABLE = ReportTable(
    name="scores",
    title="Scores",
    columns=(Column("run", "Run"), *(Column(each, each, "mean") for each in SCORES)),
    rows=(TableRow(values={"run": NAME, **dict.fromkeys(SCORES, 0.5)}),),
)

SHOWN = '{% from "sheet.html" import sheet_table %}{{ sheet_table(sheet, 1, {}) }}'

BEYOND = """
    () => [...document.querySelectorAll("td")].filter(
        each => each.getBoundingClientRect().right > innerWidth + 1).length
"""


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    if BINARY is None:
        pytest.skip("there is no Chromium here")
    with launched() as started:
        yield started


def test_no_column_is_lost(browser: "Browser") -> None:
    table = environment().from_string(SHOWN).render(sheet=sheet(TABLE))
    shown = browser.new_page(viewport={"width": 1280, "height": 900})
    shown.set_content(f"<style>{report_style().read_text()}</style><main>{table}</main>")
    region = shown.get_by_role("region", name="Scores")
    region.focus()
    assert region.evaluate("each => each === document.activeElement && each.scrollWidth > each.clientWidth")
    assert shown.get_by_text("28 columns").is_visible()
    assert shown.get_by_text("a model of many").evaluate("each => each.getBoundingClientRect().height") < 50
    shown.set_viewport_size({"width": 360, "height": 740})
    assert shown.evaluate(BEYOND) == 0
    shown.emulate_media(media="print")
    shown.set_viewport_size({"width": 700, "height": 900})
    assert shown.evaluate(BEYOND) == 0
    shown.close()
