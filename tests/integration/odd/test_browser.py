"""Odd pages in a real browser, at two sizes: nothing runs, nothing is too broad, axe has nothing to say."""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from sqlalchemy import Engine, select

from cotrail.models.schema.tables import questions, runs
from tests.integration.odd import store
from tests.integration.served_here import serving

pytest.importorskip("playwright", reason="Playwright isn't installed")
pytest.importorskip("axe_playwright_python", reason="axe isn't installed")

from tests.browser.chromium import BINARY, Looked, launched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LOOKED_AT = ("rethinking-v1", "searchain-v1", "probtree-v1", "tool-agent-v1", "zero-shot-v1")
"""Systems whose pages have parts of their own, and one that searches nothing."""


@pytest.fixture
def url(here: None) -> Iterator[str]:
    with serving() as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    if BINARY is None:
        pytest.skip("there is no Chromium here")
    with launched() as started:
        yield started


@pytest.fixture
def tab(browser: "Browser", url: str) -> Iterator[Looked]:
    """A tab, closed before its service is: that would wait for the page's stream."""
    looked = Looked(browser, url)
    yield looked
    looked.close()


def _pages(odd: Engine) -> Iterator[str]:
    with odd.connect() as connection:
        rows = connection.execute(
            select(runs.c.id, questions.c.key)
            .outerjoin_from(runs, questions, questions.c.run_id == runs.c.id)
            .where(runs.c.id.in_([*store.STATES, *LOOKED_AT]))
            .order_by(runs.c.id, questions.c.position)
        ).all()
    for run, key in {row.id: row.key for row in rows}.items():  # the last question of each
        yield f"/runs/{quote(run)}"
        if key is not None:
            yield f"/runs/{quote(run)}/questions/{quote(key, safe='')}"


@pytest.mark.slow(group=5)
@pytest.mark.timeout(1800)
def test_every_odd_page_suits_all(tab: Looked, odd: Engine) -> None:
    problems = list[str]()
    for address in _pages(odd):
        tab.go(address)
        problems += tab.problems()
    assert not problems, "\n".join(problems)


@pytest.mark.timeout(300)
def test_a_page_says_that_its_service_is_away_and_comes_back(tab: Looked) -> None:
    tab.go("/runs/under-way")
    state = tab.page.locator("#reached")
    state.get_by_text("live", exact=True).wait_for()
    tab.page.context.set_offline(True)
    # Attempts that come after one another, as those of a page that is read at intervals, are tried again once.
    tried = tab.page.evaluate(
        """async () => {
            const after = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
            const usual = window.fetch;
            for (let time = 0; time < 3; time += 1) { await refresh(); await after(AT_ONCE + 100); }
            let tried = 0;
            window.fetch = (...given) => { tried += 1; return usual(...given); };
            await after(AGAIN);
            window.fetch = usual;
            return tried;
        }"""
    )
    assert tried == 1
    tab.page.get_by_text("not reached since").wait_for()
    tab.page.context.set_offline(False)
    state.get_by_text("live", exact=True).wait_for()


COLOURS = "all => all.map(each => getComputedStyle(each).backgroundColor)"

SMALLEST = """
    () => Math.min(...[...document.querySelectorAll(".causes text")].filter(each => each.getClientRects().length).map(
        each => parseFloat(getComputedStyle(each).fontSize) * each.getScreenCTM().a))
"""


@pytest.mark.timeout(300)
def test_what_is_chosen_is_told_apart_in_forced_colours(tab: Looked) -> None:
    tab.page.emulate_media(forced_colors="active")
    tab.go("/?state=running")
    for chosen, others in (
        (".bar nav a[aria-current]", ".bar nav a:not([aria-current])"),
        (".chip[aria-current]", ".chip:not([aria-current])"),
    ):
        marked, unmarked = (set(tab.page.eval_on_selector_all(each, COLOURS)) for each in (chosen, others))
        assert marked, chosen
        assert not marked & unmarked, chosen
    bar = tab.page.locator("progress").first
    looks = []
    for share in (0, 1):
        bar.evaluate(f"each => {{ each.value = {share} * each.max; }}")
        looks.append(bar.screenshot())
    assert looks[0] != looks[1]


@pytest.mark.timeout(300)
def test_the_causes_can_be_read_on_a_telephone(tab: Looked) -> None:
    tab.go("/runs/nothing-found")
    tab.page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
    for width in (360, 900, 1000, 1280):
        tab.page.set_viewport_size({"width": width, "height": 740})
        assert tab.page.evaluate(SMALLEST) >= 11, width
