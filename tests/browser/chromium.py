"""Chromium, as Debian has it, and what is looked for on each page that it shows."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

from playwright.sync_api import Browser, Page, sync_playwright

BINARY = shutil.which("chromium") or shutil.which("google-chrome")

DESKTOP, TELEPHONE = (1280, 900), (390, 844)

SLOW = 120_000
"""Milliseconds that anything may take on a machine with much else to do."""

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")

_VIOLATIONS = """
    async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
        each => `${each.id}: ${each.help}: ${each.nodes.map(node => node.html).slice(0, 3).join(" | ")}`)
"""


@contextmanager
def launched() -> Iterator[Browser]:
    """The browser, without a screen."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BINARY, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Looked:
    """A tab of the browser, which keeps what the browser complains of."""

    def __init__(self, browser: Browser, url: str, size: tuple[int, int] = DESKTOP) -> None:
        self.url = url
        self._size = size
        self.complaints: list[str] = []
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, base_url=url)
        context.set_default_timeout(SLOW)
        self.page: Page = context.new_page()
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))

    def go(self, address: str) -> None:
        """Open a page of the service."""
        self.complaints.clear()
        # Pages that live never stop to load.
        answer = self.page.goto(address, wait_until="domcontentloaded")
        assert answer is not None
        assert answer.status == 200, (address, answer.status)

    def links(self) -> list[str]:
        """The addresses of the service's pages that this one leads to."""
        found = self.page.eval_on_selector_all("a[href^='/']", "all => all.map(each => each.getAttribute('href'))")
        return [address.partition("#")[0] for address in found if not address.startswith(("/v1/", "/auth/"))]

    def problems(self) -> list[str]:
        """What is wrong with the page: the browser complains, text of others runs, it is too broad for this size or
        a telephone, axe finds it.
        """
        found = list(self.complaints)
        if self.page.evaluate("window.hacked") is not None:
            found.append("a text ran as a script")
        for size in dict.fromkeys((TELEPHONE, self._size)):
            self._resize(size)
            broad = self.page.evaluate("document.scrollingElement.scrollWidth - document.documentElement.clientWidth")
            if broad > 0:
                found.append(f"{broad} pixels too broad for {size[0]}")
        self.page.evaluate(AXE)
        found += self.page.evaluate(_VIOLATIONS)
        return [f"{self.page.url}: {each}" for each in found]

    def _resize(self, size: tuple[int, int]) -> None:
        self.page.set_viewport_size({"width": size[0], "height": size[1]})

    def close(self) -> None:
        """Close the tab."""
        self.page.context.close()
