"""Sections of a Markdown file (CommonMark): the headings above a text, and the blocks that it has.

A block is a paragraph, a list, a quotation, a table, or code in its fence, in the words of the file. Only headings on
the outermost level begin a section. Front matter, lines between `---` or `+++` at the file's beginning, is left out.
"""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from msgspec import Struct

_FRONT_MATTER = {"---": ("---", "..."), "+++": ("+++",)}
"""The lines that begin front matter in YAML and in TOML, with those that end it."""


class Heading(Struct, frozen=True):
    """A heading; level: 1 to 6."""

    level: int
    text: str


class Section(Struct, frozen=True):
    """Blocks under the same headings, the outermost first."""

    headings: tuple[Heading, ...]
    blocks: tuple[str, ...]


def of_text(text: str) -> Iterator[Section]:
    """Yield the sections that have blocks, in their order."""
    lines = _without_front_matter(text.split("\n"))
    headings: tuple[Heading, ...] = ()
    blocks: list[str] = []
    for token, inner in pairwise([*_parser().parse("\n".join(lines)), None]):
        if token is None or token.level or token.map is None or token.type == "hr":
            continue
        if token.type != "heading_open":
            blocks.append("\n".join(lines[slice(*token.map)]))
            continue
        if blocks:
            yield Section(headings, tuple(blocks))
        level = int(token.tag.removeprefix("h"))
        above = (heading for heading in headings if heading.level < level)
        headings, blocks = (*above, Heading(level, inner.content if inner else "")), []
    if blocks:
        yield Section(headings, tuple(blocks))


def _without_front_matter(lines: list[str]) -> list[str]:
    mark = lines[0].rstrip()
    if mark not in _FRONT_MATTER:
        return lines
    end = next((number for number, line in enumerate(lines[1:], start=1) if line.rstrip() in _FRONT_MATTER[mark]), 0)
    return lines[end + 1 :] if end else lines


@cache
def _parser() -> MarkdownIt:
    # Blocks alone, whose parsing takes linear time; link definitions stay as text.
    return MarkdownIt("commonmark").disable(["inline", "reference"])
