"""Reading corpus files: paragraphs as JSON Lines, or the contexts of HotpotQA's and MuSiQue's question files."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.datasets import hotpotqa, musique
from cotrail.datasets.records import decode, entries, is_list, lines
from cotrail.errors import CorpusError
from cotrail.paragraphs import Paragraph


def read_corpus(paths: Sequence[Path]) -> Iterator[Paragraph]:
    """The paragraphs of the files in their order, each content once, under the first of its ids.

    A file is `{"id", "title", "text"}` a line, HotpotQA's list of questions or MuSiQue's questions a line, and is known
    by its content. Paragraphs of question files get ids made from their text. Only digests of what was read are kept.
    CorpusError: a record can't be used, one id names two paragraphs, or there is no paragraph at all.
    """
    contents: set[bytes] = set()
    names: dict[bytes, bytes] = {}
    for path in paths:
        for place, paragraph in _read(path):
            content = bytes.fromhex(paragraph.digest)[:16]
            if names.setdefault(_short(paragraph.id), content) != content:
                raise CorpusError(f"{place}: the id {paragraph.id!r} names another paragraph before; give it another")
            if content not in contents:
                contents.add(content)
                yield paragraph
    if not contents:
        raise CorpusError(f"no paragraphs in {', '.join(map(str, paths)) or 'no files'}; check that these are right")


def _short(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:16]


class _Line(Struct, frozen=True):
    """Either of the two kinds of line, as far as needed to tell them apart."""

    paragraphs: msgspec.Raw = msgspec.Raw()


class _Context(Struct, frozen=True):
    context: hotpotqa.Context


class _Paragraphs(Struct, frozen=True):
    paragraphs: tuple[musique.ContextParagraph, ...]


def _read(path: Path) -> Iterator[tuple[str, Paragraph]]:
    return _contexts(path) if is_list(path, CorpusError) else _lines(path)


def _contexts(path: Path) -> Iterator[tuple[str, Paragraph]]:
    for place, raw in entries(path, CorpusError):
        context = decode(raw, _Context, place, CorpusError).context
        yield from ((place, _named(title, hotpotqa.joined(sentences))) for title, sentences in context)


def _lines(path: Path) -> Iterator[tuple[str, Paragraph]]:
    for place, raw in lines(path, CorpusError):
        if decode(raw, _Line, place, CorpusError).paragraphs:
            paragraphs = decode(raw, _Paragraphs, place, CorpusError).paragraphs
            yield from ((place, _named(each.title, each.paragraph_text)) for each in paragraphs)
        else:
            yield place, _paragraph(raw, place)


def _paragraph(raw: bytes, place: str) -> Paragraph:
    paragraph = decode(raw, Paragraph, place, CorpusError)
    if not paragraph.id.strip():
        raise CorpusError(f"{place}: the id is empty; give each paragraph its own")
    return paragraph


def _named(title: str, text: str) -> Paragraph:
    """A paragraph that has no id of its own."""
    paragraph = Paragraph(id="", title=title, text=text)
    return msgspec.structs.replace(paragraph, id=paragraph.digest[:16])
