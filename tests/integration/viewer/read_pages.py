"""Pages read as a browser reads them: elements with their attributes and texts."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from litestar.testing import TestClient

BROWSER = {"Accept": "text/html,application/xhtml+xml"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Element:
    """An element of a page; children: elements and texts in their order."""

    def __init__(self, name: str, attributes: dict[str, str | None]) -> None:
        self.name = name
        self.attributes = attributes
        self.children: list[Element | str] = []

    @property
    def text(self) -> str:
        """What a reader sees of it, on one line."""
        return " ".join(" ".join(self._texts()).split())

    def all(self, name: str = "", /, **attributes: str) -> "list[Element]":
        """The elements within it of this name and with these attributes (`data_live` for data-live)."""
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        return [
            each
            for each in self._elements()
            if name in ("", each.name) and all(each.attributes.get(key) == value for key, value in wanted.items())
        ]

    def one(self, name: str = "", /, **attributes: str) -> "Element":
        """The only such element."""
        [found] = self.all(name, **attributes)
        return found

    def _elements(self) -> "Iterator[Element]":
        for each in self.children:
            if isinstance(each, Element):
                yield each
                yield from each._elements()

    def _texts(self) -> Iterator[str]:
        for each in self.children:
            if isinstance(each, str):
                yield each
            else:
                yield from each._texts()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("document", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open[-1].name == tag, f"</{tag}> ends <{self.open[-1].name}>"
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read_page(html: str) -> Element:
    """The page as a tree; fails where elements aren't nested."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].name}> isn't closed"
    return reader.open[0]


def page_at(client: "TestClient[Any]", address: str, status: int = 200) -> Element:
    """The page at an address; fails where something in it could run that isn't the viewer's own file."""
    answer = client.get(address, headers=BROWSER)
    assert answer.status_code == status, answer.text
    page = read_page(answer.text)
    check_nothing_runs(page)
    return page


def check_nothing_runs(page: Element) -> None:
    """Fail where a page has a script, a style or an address of its own that isn't the service's."""
    assert [each.attributes["src"] for each in page.all("script")] == [page.one("script").attributes["src"]]
    assert not page.one("script").children
    assert not page.all("style")
    for each in page.all():
        names = [*each.attributes]
        assert not [name for name in names if name == "style" or name.startswith("on")], each.attributes
        for name in ("href", "src", "action", "data-load", "data-events"):
            address = each.attributes.get(name)
            own = address is None or (address.startswith(("/", "#", "?")) and not address.startswith("//"))
            docs = name == "href" and str(address).startswith("https://")
            assert own or docs, (each.name, address)
