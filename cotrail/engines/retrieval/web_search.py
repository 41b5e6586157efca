"""The live web as a corpus: providers that search it, one thin adapter each, and pages that are opened by address."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from textwrap import TextWrapper
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.optional_packages import check_package, installed_with
from cotrail.common.printable_text import cut, storable
from cotrail.core.questions import Hit, Paragraph
from cotrail.engines.retrieval.retrieve_server import AskedCorpus
from cotrail.engines.retrieval.search_server import Provider, WebSearch
from cotrail.errors import TransientStepError

MOST_WORDS, MOST_CHARACTERS = 50, 400
"""A query is cut to so many words and characters: Brave takes no more, and Tavily no more characters."""

PASSAGES = TextWrapper(700, replace_whitespace=False, break_on_hyphens=False)
"""Cuts the text of an opened page into passages of so many characters at most, at spaces."""

EXA_SNIPPET = {"text": {"maxCharacters": 1_000}}
"""What Exa is asked for of a page's text; the others decide on their snippets themselves."""


class Adapter(Struct, frozen=True):
    """How a provider is asked; key: the header of its key, unless that is a bearer token. most: results of a search."""

    key: str
    body: Callable[[str, int], dict[str, Any]]
    method: str = "POST"
    most: int = 20


ADAPTERS: Mapping[Provider, Adapter] = {
    # With decorations, snippets have tags around the words of the query.
    "brave": Adapter("X-Subscription-Token", lambda q, n: {"q": q, "count": n, "text_decorations": False}, "GET"),
    "exa": Adapter("x-api-key", lambda q, n: {"query": q, "numResults": n, "contents": EXA_SNIPPET}, most=100),
    "searxng": Adapter("", lambda q, _: {"q": q, "format": "json"}, "GET"),
    "serper": Adapter("X-API-KEY", lambda q, n: {"q": q, "num": n}, most=100),
    "tavily": Adapter("", lambda q, n: {"query": q, "max_results": n}),
}


class _Answer(Struct, frozen=True, kw_only=True):
    """An answer of any provider: Serper's results are `organic`, and Brave's are within `web`, if there are some."""

    results: list[dict[str, Any]] | None = None
    organic: list[dict[str, Any]] | None = None
    web: "_Answer | None" = None
    type: str = ""
    unresponsive_engines: list[Any] = []

    @property
    def found(self) -> list[dict[str, Any]] | None:
        """The results; None where it has no place for them."""
        nothing: list[dict[str, Any]] | None = [] if self.type == "search" else None
        lists = (self.results, self.organic, self.web.results if self.web else nothing)
        return next((each for each in lists if each is not None), None)


def said(result: dict[str, Any], *names: str) -> str:
    """The first of these fields that holds a text; providers have different names for the same."""
    return next((storable(text) for name in names if (text := result.get(name)) and isinstance(text, str)), "")


class WebCorpus(AskedCorpus):
    """The web as a provider finds it, whose pages are opened by their addresses.

    A paragraph's id is its page's address, which its title ends in, so that a model that is shown it can open the page.
    """

    def __init__(self, name: str, server: WebSearch) -> None:
        check_package("trafilatura", "web")  # pages are read by another process, which couldn't say so
        with installed_with("web"):
            from cotrail.engines.retrieval import web_pages
        self._adapter, self._reads, self._longest = ADAPTERS[server.provider], server.read, server.page_characters
        self._web, self._pages = web_pages, web_pages.Pages(server)
        header = self._adapter.key
        super().__init__(name, server, (lambda key: {header: key} if key else {}) if header else None)

    def titled(self, title: str) -> tuple[Paragraph, ...]:
        """The passages of the page whose address a title has; one that says why, where the page can't be read.

        So a dead link is recorded and shown to the model that named it, and ends no question.
        Raises StepError for a title without an address, TransientStepError where no name can be looked up.
        """
        address = self._web.address_in(title)
        if not address:
            raise self._refused(f"look-ups of titles ({title!r})", "name a page by its address, as https://host/page")
        page = self._event_loop.run(partial(self._pages.read, address))
        if page.problem:
            return (Paragraph(id=address, title=address, text=f"The page can't be read: {page.problem}."),)
        head, passages = _title(page.title, address), PASSAGES.wrap(page.text)
        return tuple(Paragraph(id=f"{address}#{n}", title=head, text=text) for n, text in enumerate(passages, start=1))

    def _ranked(self, query: str, count: int) -> tuple[Hit, ...]:
        words = " ".join(storable(query).split()[:MOST_WORDS])[:MOST_CHARACTERS]
        count = min(count, self._adapter.most)
        answer = self._asked(self._adapter.body(words, count), _Answer, self._adapter.method)
        if answer.unresponsive_engines and not answer.found:
            raise TransientStepError(f"none of the engines of {self._server.url} has answered; look at its settings")
        paragraphs = self._paragraphs(answer.found)[:count]
        if self._reads:
            pages = self._event_loop.run(partial(self._read, paragraphs))
            both = zip(paragraphs, pages, strict=True)
            paragraphs = [replace(each, text=page.text or each.text) for each, page in both]
        return tuple(Hit(paragraph=each, rank=rank, score=1 / rank) for rank, each in enumerate(paragraphs, start=1))

    def _paragraphs(self, results: list[dict[str, Any]] | None) -> list[Paragraph]:
        """One for each address, in their order."""
        found: dict[str, Paragraph] = {}
        for each in results or ():
            if address := self._web.normal(said(each, "url", "link")):
                title, text = said(each, "title"), said(each, "description", "content", "snippet", "text")
                found.setdefault(
                    address, Paragraph(id=address, title=_title(title, address), text=text[: self._longest])
                )
        if not found and results != []:
            raise self._malformed("it has no results" if results is None else "no result has the address of a page")
        return list(found.values())

    async def _read(self, paragraphs: Sequence[Paragraph]) -> Sequence[Any]:
        return await asyncio.gather(*(self._pages.read(each.id) for each in paragraphs))


def _title(title: str, address: str) -> str:
    return f"{cut(storable(' '.join(title.split())), 300)} {address}".strip()
