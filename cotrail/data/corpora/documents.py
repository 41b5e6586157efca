"""Documents as a corpus: Markdown, text, HTML and PDF files, alone or in a folder, cut into passages.

A passage has consecutive blocks of one section, up to `MOST_WORDS` words. Only a block that is longer by itself is cut:
behind the last sentence within the limit, else behind the last line, else behind the last word.
"""

import io
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from msgspec import Struct

from cotrail.common.optional_packages import installed_with
from cotrail.common.printable_text import cut, is_blank, storable
from cotrail.common.tables import SUFFIXES as RECORDS
from cotrail.common.text_files import MAX_SMALL_FILE_BYTES, MIB, opened, read_text, read_whole, unpacked_name
from cotrail.core.questions import Paragraph
from cotrail.data.corpora.document_names import (
    HTML,
    MARKDOWN,
    PDF,
    SUFFIXES,
    files_in,
    holds_records,
    is_document,
    suffix,
)
from cotrail.errors import CorpusError

# Sections of a Markdown file (CommonMark): the headings above a text, and the blocks that it has.
#
# A block is a paragraph, a list, a quotation, a table, or code in its fence, in the words of the file. Only headings on
# the outermost level begin a section. Front matter, lines between `---` or `+++` at the file's beginning, is left out.

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


MOST_WORDS = 100
"""Words of a passage, as in the paragraphs of Wikipedia that DPR searches (Karpukhin et al., 2020)."""

MAX_MARKDOWN_BYTES = 4 * MIB
"""Maximum size of a Markdown file: the parser takes up to 500 bytes for each of its own."""

MAX_HTML_BYTES = 16 * MIB
"""Maximum size of an HTML file."""

MAX_PDF_BYTES = 256 * MIB
"""Maximum size of a PDF, which is held in memory."""

CORPUS = "corpus.jsonl"
"""The file of a folder in BEIR's form that holds its documents."""

_UNREAD = frozenset({"head", "script", "style", "template", "noscript", "nav", "svg", "button", "-text", "-comment"})
"""Nodes of HTML that aren't looked into."""

_CELLS = frozenset({"td", "th", "br", "img"})
_WITHIN_LINES = (
    "a abbr b bdi bdo cite code data del dfn em font i ins kbd label mark q s samp small span strong sub sup time tt u "
    "var wbr"
)
_INLINE = _CELLS.union(_WITHIN_LINES.split())
"""Tags that end no block of text; those of `_CELLS` end a word."""

_HEADING = re.compile(r"h[1-6]")

BETWEEN_HEADINGS = " > "

LONGEST_HEADING = 255
"""Maximum characters of a heading in a title; longer ones are cut."""

_WORD = re.compile(r"\S+")
BLANK_LINES = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_SENTENCE_ENDS = (".", "!", "?")
_CLOSING = "\"'\u201d\u2019)]*_"


class Folder(Struct, frozen=True):
    """What is read of a folder and those below it, in the order of the paths; others: the other files."""

    documents: tuple[Path, ...]
    others: tuple[Path, ...]


def look_into(folder: Path) -> Folder:
    """BEIR's `corpus.jsonl` where the folder has one, else its documents, else its files of records.

    CorpusError: a folder can't be read, or there is none of these.
    """

    def refuse(error: OSError) -> None:
        raise CorpusError(f"{error.filename} can't be read ({error.strerror}); check the path and its permissions")

    files = sorted(files_in(folder, refuse), key=lambda file: file.relative_to(folder).parts)
    corpus = [file for file in files if unpacked_name(file) == folder / CORPUS]
    read = corpus or list(filter(is_document, files)) or list(filter(holds_records, files))
    if not read:
        raise CorpusError(
            f"{folder} is a folder without a document ({', '.join(SUFFIXES)}) or a file of records "
            f"({', '.join(RECORDS)}); name another, or make such files of what it has"
        )
    documents = set(read)
    return Folder(tuple(read), tuple(file for file in files if file not in documents))


def root_of(paths: Sequence[Path]) -> Path:
    """The folder that ids are relative to: the innermost one that has all of these files and folders."""
    return Path(os.path.commonpath([_absolute(path if path.is_dir() else path.parent) for path in paths]))


def _absolute(path: Path) -> Path:
    # Unlike `resolve`, it leaves links as they are named, so that ids depend on names alone.
    return Path(os.path.abspath(path))  # noqa: PTH100


def read_document(path: Path, root: Path) -> Iterator[tuple[str, Paragraph]]:
    """Yield the passages of a document with their places; a passage's id is `notes/a.md#1`, numbered from 1.

    A passage's title has the headings above it, joined by `BETWEEN_HEADINGS`, behind the file's name where none of them
    is of the first level. CorpusError: the file is too large, or no text in UTF-8.
    """
    try:
        name = _absolute(path).relative_to(root).as_posix().encode().decode()
    except UnicodeEncodeError as error:
        raise CorpusError(f"{os.fsencode(path)!r}: the file's name isn't UTF-8; rename it") from error
    sections = next((read(path) for suffixes, read in READERS.items() if suffix(path) in suffixes), None)
    titled = (
        (_title(path, section), passage) for section in sections or _text(path) for passage in passages(section.blocks)
    )
    for number, (title, passage) in enumerate(titled, start=1):
        yield f"{path}, passage {number}", Paragraph(id=f"{name}#{number}", title=title, text=passage)


def _markdown(path: Path) -> Iterable[Section]:
    return of_text(read_text(path, CorpusError, MAX_MARKDOWN_BYTES))


def _text(path: Path) -> Iterable[Section]:
    return [Section((), tuple(BLANK_LINES.split(read_text(path, CorpusError, MAX_SMALL_FILE_BYTES))))]


def _html(path: Path) -> Iterator[Section]:
    with installed_with("files"):
        from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(read_text(path, CorpusError, MAX_HTML_BYTES))
    title = tree.css_first("title")
    named = _in_a_line([title.text()]) if title else ""
    headings: tuple[Heading, ...] = (Heading(1, named),) if named else ()
    blocks, pieces = list[str](), list[str]()
    for node, ends in _nodes(tree.body):
        if node.tag == "-text":
            pieces.append(node.text_content or "")
        elif node.tag in _INLINE:
            pieces.append(" " if node.tag in _CELLS else "")
        else:
            text = _in_a_line(pieces)
            pieces.clear()
            if ends and text and _HEADING.fullmatch(node.tag):
                yield Section(headings, tuple(blocks))
                level = int(node.tag[1])
                headings, blocks = (*(each for each in headings if each.level < level), Heading(level, text)), []
            elif text:
                blocks.append(text)
    yield Section(headings, tuple(blocks))


def _in_a_line(pieces: Iterable[str]) -> str:
    return " ".join("".join(pieces).replace("\0", "").split())


def _nodes(root: Any) -> Iterator[tuple[Any, bool]]:
    """The nodes of a tree in their order, at their beginnings and at their ends; what nobody reads is left out."""
    waiting = [(root, False)] if root else []
    while waiting:
        node, ends = waiting.pop()
        yield node, ends
        if not ends and node.tag not in _UNREAD:
            waiting.append((node, True))
            waiting.extend((child, False) for child in reversed(list(node.iter(include_text=True))))


def _pdf(path: Path) -> Iterator[Section]:
    with installed_with("files"):
        from pypdf import PdfReader

    with opened(path, CorpusError) as file:
        content = read_whole(file, str(path), CorpusError, MAX_PDF_BYTES)
    try:
        logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of each oddity on standard error
        pages = [storable(page.extract_text()) for page in PdfReader(io.BytesIO(content)).pages]
    except Exception as cause:  # pypdf raises all kinds where a file is damaged
        reason = next(iter(str(cause).splitlines()), type(cause).__name__)
        advice = "save it without a password" if "decrypt" in reason else "it is damaged: get it again, or take it out"
        raise CorpusError(f"{path}: this PDF can't be read ({reason}); {advice}") from cause
    if not any(page.strip() for page in pages):
        raise CorpusError(f"{path}: this PDF has no text, as one of pictures; have it recognised (OCR), or take it out")
    for number, page in enumerate(pages, start=1):
        yield Section((Heading(2, f"page {number}"),), tuple(BLANK_LINES.split(page)))


READERS: dict[tuple[str, ...], Callable[[Path], Iterable[Section]]] = {MARKDOWN: _markdown, HTML: _html, PDF: _pdf}
"""What reads documents, by how their names end; all others are text."""


def _title(path: Path, section: Section) -> str:
    has_title = section.headings and section.headings[0].level == 1
    texts = [heading.text for heading in section.headings]
    return BETWEEN_HEADINGS.join(
        cut(text, LONGEST_HEADING) for text in (texts if has_title else [unpacked_name(path).stem, *texts])
    )


def passages(blocks: Iterable[str]) -> Iterator[str]:
    """Pack blocks of text, a blank line between them, into passages of `MOST_WORDS` words at most."""
    packed: list[str] = []
    words = 0
    for piece in (piece for block in blocks for piece in _pieces(block)):
        size = len(piece.split())
        if packed and words + size > MOST_WORDS:
            yield "\n\n".join(packed)
            packed, words = [], 0
        packed.append(piece)
        words += size
    if packed:
        yield "\n\n".join(packed)


def _pieces(block: str) -> Iterator[str]:
    """Cut a block that is too long; none of one without words."""
    if is_blank(block):
        return
    words = (match.span() for match in _WORD.finditer(block))
    ahead = list(islice(words, MOST_WORDS + 1))
    end = 0
    while ahead:
        size = _fitting(block, ahead)
        # The indent of a piece's first line stays: it belongs to code.
        start = block.rfind("\n", end, ahead[0][0]) + 1 or (ahead[0][0] if end else 0)
        end = ahead[size - 1][1]
        yield block[start:end]
        ahead = [*ahead[size:], *islice(words, size)]


def _fitting(block: str, words: Sequence[tuple[int, int]]) -> int:
    """How many of the words a piece takes; the last of them only shows where the one before it ends."""
    if len(words) <= MOST_WORDS:
        return len(words)
    places = range(MOST_WORDS, 0, -1)
    by_sentence = (n for n in places if block[slice(*words[n - 1])].rstrip(_CLOSING).endswith(_SENTENCE_ENDS))
    by_line = (n for n in places if "\n" in block[words[n - 1][1] : words[n][0]])
    return next(by_sentence, 0) or next(by_line, MOST_WORDS)
