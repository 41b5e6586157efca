"""An answer in a notebook: it has the height of what it shows and the notebook's colours, and runs nothing."""

from functools import partial
from typing import TYPE_CHECKING

import pytest

from cotrail.answers import Answered
from cotrail.core.questions import Paragraph
from cotrail.services.results.questions import shown_question
from tests.browser.conftest import HOSTILE
from tests.unit.made_runs import question, record, search, written

pytest.importorskip("playwright", reason="Playwright isn't installed")

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage

FRAME = "document.querySelector('iframe')"
NOTEBOOK = "<!doctype html><body data-jp-theme-light={}><h1>Notebook</h1><div id=cell style='display: none'>{}</div>"


def test_an_answer_fits_its_cell_follows_the_notebooks_theme_and_runs_nothing(browser: "Browser") -> None:
    found = Paragraph(id="p", title=HOSTILE, text=f"</iframe>{HOSTILE}")
    traced = question(text=HOSTILE, steps=(search(0, found), written(1, HOSTILE), search(2, found)))
    html = Answered(question=shown_question(record(), traced))._repr_html_()
    colours = []
    for light in ("true", "false"):
        page = browser.new_page(viewport={"width": 700, "height": 900}, color_scheme="null")
        said = list["ConsoleMessage"]()
        page.on("console", partial(_keep, said))
        page.set_content(NOTEBOOK.format(light, html))
        page.evaluate("cell.style.display = ''")  # as an output that was folded, or in another tab
        page.wait_for_function(f"parseInt({FRAME}.style.height) > 100")
        inner = f"{FRAME}.contentDocument.documentElement"
        assert page.evaluate(f"[{FRAME}.offsetHeight, Math.min({inner}.offsetHeight, 640)]") == [640, 640]
        assert page.evaluate("getComputedStyle(document.querySelector('h1')).fontFamily") != page.evaluate(
            f"getComputedStyle({FRAME}.contentDocument.querySelector('h1')).fontFamily"
        )
        colours.append(page.evaluate(f"getComputedStyle({FRAME}.contentDocument.querySelector('h1')).color"))
        frame = page.frame_locator("iframe")
        frame.get_by_text("seen in turn 1").click()
        assert page.frames[1].url == "about:srcdoc#turn-1"
        for size in (700, 320):
            page.set_viewport_size({"width": size, "height": 900})
            assert page.evaluate(f"{inner}.scrollWidth - {inner}.clientWidth") <= 0
        assert page.evaluate(f"[window.hacked, {FRAME}.contentWindow.hacked]") == [None, None]
        assert not said
        page.close()
    assert len(set(colours)) == 2


def _keep(said: "list[ConsoleMessage]", message: "ConsoleMessage") -> None:
    said.append(message)
