"""Pages as a browser reads them: elements with their attributes and texts."""

from collections.abc import Iterator
from html.parser import HTMLParser
from xml.etree.ElementTree import Element, TreeBuilder

VOID = {"base", "br", "hr", "img", "input", "link", "meta", "rect", "line", "circle", "polyline"}


class Page:
    """The elements of a page."""

    def __init__(self, html: str) -> None:
        reader = _Reader()
        reader.feed(html)
        self.root = reader.builder.close()

    def __iter__(self) -> Iterator[Element]:
        return self.root.iter()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def named(self, id_: str) -> Element:
        """The one element with this id."""
        [found] = self.having("id", id_)
        return found

    def having(self, attribute: str, value: str | None = None) -> list[Element]:
        """The elements with this attribute, of this value."""
        return [each for each in self if attribute in each.attrib and value in (None, each.attrib[attribute])]

    def of(self, tag: str) -> list[Element]:
        """The elements of this name."""
        return list(self.root.iter(tag))

    def linked(self, relation: str) -> str:
        """Where the one link of this relation goes."""
        [found] = [each for each in self.having("rel", relation) if each.tag == "a"]
        return found.attrib["href"]


def text_of(element: Element) -> str:
    """All text in an element, its white space as one space."""
    return " ".join("".join(element.itertext()).split())


class _Reader(HTMLParser):
    """Builds a tree; raises AssertionError where an element is closed that isn't open."""

    def __init__(self) -> None:
        super().__init__()
        self.builder = TreeBuilder()
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        if tag in VOID:
            self.builder.end(tag)
        else:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag, f"</{tag}> closes another element"
        self.builder.end(tag)

    def handle_data(self, data: str) -> None:
        if self._open:
            self.builder.data(data)
