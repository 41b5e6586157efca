"""2WikiMultihopQA's and MuSiQue's corpora: the context paragraphs of all questions of all splits."""

from collections.abc import Iterator
from typing import BinaryIO

from msgspec import Struct

from cotrail.common.input_limits import numbered_lines
from cotrail.common.json_files import decode
from cotrail.data.datasets import hotpotqa, musique
from cotrail.errors import CorpusError


class _HotpotContext(Struct, frozen=True):
    context: hotpotqa.Context


class _ProcessedContext(Struct, frozen=True):
    contexts: tuple[musique.ContextParagraph, ...]


class _MusiqueContext(Struct, frozen=True):
    paragraphs: tuple[musique.ContextParagraph, ...]


def lines(file: BinaryIO, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the non-blank lines of a file with their places."""
    numbered = numbered_lines(file, name, CorpusError)
    return ((f"{name}, line {number}", line) for number, line in numbered if line.strip())


def of_entry(place: str, raw: bytes, _seed: int = 0) -> Iterator[tuple[str, str]]:
    """The paragraphs of a question of HotpotQA or 2WikiMultihopQA."""
    context = decode(raw, _HotpotContext, place, CorpusError).context
    return ((title, hotpotqa.joined(sentences)) for title, sentences in context)


def of_line(place: str, raw: bytes, _seed: int = 0) -> Iterator[tuple[str, str]]:
    """The paragraphs of a question of MuSiQue."""
    found = decode(raw, _MusiqueContext, place, CorpusError).paragraphs
    return ((paragraph.title, paragraph.paragraph_text) for paragraph in found)


def of_processed(place: str, raw: bytes) -> Iterator[tuple[str, str]]:
    """The paragraphs of a question that the authors of IRCoT processed."""
    found = decode(raw, _ProcessedContext, place, CorpusError).contexts
    return ((paragraph.title, paragraph.paragraph_text) for paragraph in found)
