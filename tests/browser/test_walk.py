"""A real browser walks through the viewer: what it shows, whom it suits, and that it lives."""

import re
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.faults.stacked import Cotrail, process

pytest.importorskip("playwright", reason="Playwright isn't installed")
pytest.importorskip("axe_playwright_python", reason="axe isn't installed")

from tests.browser.chromium import DESKTOP, SLOW, TELEPHONE, Looked

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MOST = {DESKTOP: 2, TELEPHONE: 1}
"""Pages of one kind that a walk looks at: a run's, then another's."""


@pytest.fixture(scope="module")
def runs(submit: Callable[..., str], cotrail: Cotrail) -> list[str]:
    made = [submit("ircot"), submit("one-step"), submit("zero-shot")]
    for run in made:
        cotrail("watch", run)
    return made


@pytest.fixture
def tab(browser: "Browser", url: str) -> Iterator[Looked]:
    looked = Looked(browser, url)
    yield looked
    looked.close()


def kind(address: str) -> str:
    """What an address is one of: its path without names, and the names in its query."""
    path, _, query = address.partition("?")
    sections = [part for part in path.split("/") if (part.isalpha() and part.islower()) or part in ("", "side")]
    return "/".join(sections) + "?" + "&".join(sorted({each.partition("=")[0] for each in query.split("&")}))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "size",
    [pytest.param(DESKTOP, id="desktop"), pytest.param(TELEPHONE, id="telephone", marks=pytest.mark.slow(group=3))],
)
def test_every_page_that_is_led_to_suits_all(
    browser: "Browser", url: str, runs: list[str], size: tuple[int, int]
) -> None:
    looked, seen, kinds, problems = Looked(browser, url, size), set[str](), Counter[str](), list[str]()
    waiting = deque(["/", *(f"/runs/{run}/questions/q0" for run in runs)])
    while waiting:
        address = waiting.popleft()
        if address in seen or kinds[kind(address)] >= MOST[size]:
            continue
        seen.add(address)
        kinds[kind(address)] += 1
        looked.go(address)
        problems += looked.problems()
        waiting.extend(looked.links())
    looked.close()
    assert not problems, "\n".join(problems)
    assert len(kinds) > 5


def test_the_keyboard_does_it_all(tab: Looked, runs: list[str]) -> None:
    tab.go(f"/runs/{runs[0]}/questions/q0")
    press = tab.page.keyboard.press
    focused = "document.activeElement.closest('[data-turn]')?.id"
    press("j")
    first = tab.page.evaluate(focused)
    press("j")
    second = tab.page.evaluate(focused)
    assert first
    assert second
    assert first != second
    press("k")
    assert tab.page.evaluate(focused) == first
    press("g")
    assert tab.page.evaluate("document.activeElement.matches('[data-gold]')")
    press("?")
    assert tab.page.evaluate("document.getElementById('keys').open")
    press("Escape")
    assert not tab.page.evaluate("document.getElementById('keys').open")
    press("/")
    tab.page.keyboard.type("Ysborg")
    press("Enter")
    tab.page.wait_for_url(re.compile(r"find=Ysborg"))
    tab.page.locator("#outline li a").first.focus()
    press("Enter")
    tab.page.wait_for_url(re.compile(r"#turn-\d+"))
    press("n")
    tab.page.wait_for_url(re.compile(r"/questions/(q1|2)\b"))
    press("p")
    tab.page.wait_for_url(re.compile(r"/questions/(q0|1)\b"))
    press("u")
    tab.page.wait_for_url(re.compile(rf"/runs/{runs[0]}(\?.*)?$"))


@pytest.mark.timeout(900)
def test_a_page_lives_on_while_its_server_is_killed(tab: Looked, cotrail: Cotrail, submit: Callable[..., str]) -> None:
    writer, service = process(cotrail, "generation"), process(cotrail, "api")
    writer.suspend()
    try:
        run = submit("ircot")
        tab.go(f"/runs/{run}")
        service.send_signal(signal.SIGKILL)
    finally:
        writer.resume()
    cotrail("watch", run)
    # Nobody loads the page again: it follows the service that was started anew.
    tab.page.get_by_text("3 of 3").first.wait_for(timeout=SLOW)


def test_without_a_script_it_reads_as_well(browser: "Browser", url: str, runs: list[str]) -> None:
    context = browser.new_context(java_script_enabled=False, base_url=url)
    context.set_default_timeout(SLOW)
    page = context.new_page()
    page.goto(f"/runs/{runs[0]}/questions/q0")
    assert page.get_by_text("Ysborg").first.is_visible()
    assert page.get_by_text("Ada Lorn was born in Ysborg").first.is_visible()
    page.goto("/workers")
    page.locator("noscript a").click()
    page.wait_for_url("/workers")
    context.close()
