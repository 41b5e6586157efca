"""IIRC's corpus: the pages of `context_articles.json`, with the paragraphs of each page shuffled.

Most gold paragraphs come first on their pages, so the order would leak them (IRCoT, footnote 19).
"""

from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser

from cotrail.common.json_files import decode
from cotrail.data.datasets.sampling import shuffled
from cotrail.errors import CorpusError

MOST_HEADING_WORDS = 10
"""Words; shorter lines are headings and the like."""


class _Text(HTMLParser):
    """Collects the text between the tags."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []

    def handle_data(self, data: str) -> None:
        """Collect a piece of text."""
        self.pieces.append(data)


def paragraphs(place: str, raw: bytes, seed: int) -> Iterator[tuple[str, str]]:
    """The paragraphs of a page, given as its title and its HTML: the lines of more than ten words, shuffled."""
    title, html = decode(raw, tuple[str, str], place, CorpusError)
    lines = [line.strip() for line in text_of(html).split("\n")]
    numbered = [(number, line) for number, line in enumerate(lines) if len(line.split()) > MOST_HEADING_WORDS]
    return ((title, line) for _, line in shuffled(numbered, lambda item: f"{title}\0{item[0]}", seed))


def text_of(html: str) -> str:
    """The text of HTML: without tags, entities resolved."""
    parser = _Text()
    # Behind the last tag there is text alone, in which the parser would look for the end of a tag again and again.
    end = html.rfind(">") + 1
    parser.feed(html[:end])
    parser.close()
    return "".join(parser.pieces) + unescape(html[end:])
