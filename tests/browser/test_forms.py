"""Forms in a real browser, which decides what it says of where they come from: asking, and signing in."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.faults.stacked import Cotrail, environment_of
from tests.integration.serving import serving

pytest.importorskip("playwright", reason="Playwright isn't installed")
pytest.importorskip("axe_playwright_python", reason="axe isn't installed")

from tests.browser.chromium import Looked

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def closed(home: Path, cotrail: Cotrail, tmp_path: Path) -> Iterator[str]:
    """The same stack's service once more, which asks everyone for a token."""
    with serving(environment_of(home, {"COTRAIL_TOKENS_REQUIRED": "true"}), tmp_path / "log") as server:
        yield server.url


@pytest.mark.timeout(900)
def test_a_question_that_is_asked_is_answered_before_ones_eyes(browser: "Browser", url: str) -> None:
    looked = Looked(browser, url)
    looked.go("/ask")
    looked.page.get_by_label("Question").fill("Which river flows through Ysborg?")
    looked.page.get_by_role("button", name="Ask").click()
    looked.page.wait_for_url("**/questions/asked", wait_until="commit")
    looked.page.get_by_text("Lorn", exact=True).first.wait_for()
    assert not looked.problems()
    looked.close()


@pytest.mark.timeout(900)
def test_whoever_signs_in_goes_where_they_wanted_to(browser: "Browser", closed: str, cotrail: Cotrail) -> None:
    secret = cotrail("token", "create", "ada", "--scope", "read").strip()
    looked = Looked(browser, closed)
    page = looked.page
    page.goto("/corpora")
    page.get_by_label("Token").fill("nothing")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").wait_for()
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/corpora", wait_until="commit")
    page.get_by_role("link", name="mine").wait_for()
    looked.complaints.clear()  # what was answered with 401 before
    assert not looked.problems()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Token").wait_for()
    looked.close()
