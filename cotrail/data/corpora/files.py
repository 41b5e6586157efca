"""Reading of corpus files: paragraphs as JSON Lines, or the contexts of question files."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.input_limits import MAX_PARAGRAPH_CHARACTERS
from cotrail.common.json_files import decode, is_list, lines, opened
from cotrail.core.paragraphs import Paragraph
from cotrail.data.corpora import json_streams, question_contexts, strategyqa_evidence
from cotrail.data.corpora.digest_set import BYTES, DigestSet
from cotrail.data.corpora.paragraph_ids import content, identified
from cotrail.data.datasets.file_formats import ARTICLES, BIG_BENCH, STRATEGYQA_PARAGRAPHS, detect_format
from cotrail.errors import CorpusError

CONTEXTS = {"hotpotqa", "2wikimultihopqa", "musique", "strategyqa"}
"""Datasets whose own question files hold paragraphs; processed files of any dataset do."""


def read_corpus(paths: Sequence[Path]) -> Iterator[Paragraph]:
    """Yield the paragraphs of the files in their order, each content once, under the first of its ids.

    A file holds lines of `{"id", "title", "text"}`, StrategyQA's paragraphs, questions of HotpotQA, 2WikiMultihopQA,
    MuSiQue or StrategyQA (whose facts are taken), or questions that the authors of IRCoT processed; its content tells
    which. Paragraphs of question files get ids made from their text.
    Memory: only digests are kept, about 60 bytes a paragraph.
    CorpusError: a record can't be used, an id names two paragraphs, or there is no paragraph at all.
    """
    contents, ids, named = DigestSet(), DigestSet(), DigestSet()
    empty = True
    for path in paths:
        for place, paragraph in _read(path):
            _check_length(place, paragraph)
            new_name = named.add(_short(f"{paragraph.id}\0{paragraph.digest}"))
            if not ids.add(_short(paragraph.id)) and new_name:
                raise CorpusError(f"{place}: the id {paragraph.id!r} names another paragraph before; give it another")
            if contents.add(content(paragraph)):
                empty = False
                yield paragraph
    if empty:
        raise CorpusError(f"no paragraphs in {', '.join(map(str, paths)) or 'no files'}; check that these are right")


def _check_length(place: str, paragraph: Paragraph) -> None:
    length = len(paragraph.id) + len(paragraph.title) + len(paragraph.text)
    if length > MAX_PARAGRAPH_CHARACTERS:
        raise CorpusError(
            f"{place}: the paragraph has {length:,} characters, and {MAX_PARAGRAPH_CHARACTERS:,} is the most; divide it"
        )


def _short(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:BYTES]


class _LineKeys(Struct, frozen=True):
    """The keys that tell the kinds of lines apart."""

    paragraphs: msgspec.Raw = msgspec.Raw()
    contexts: msgspec.Raw = msgspec.Raw()


def _read(path: Path) -> Iterator[tuple[str, Paragraph]]:
    form = detect_format(path, CorpusError)
    if form in (ARTICLES, BIG_BENCH) or (form and form.datasets and CONTEXTS.isdisjoint(form.datasets)):
        raise CorpusError(
            f"{path} seems to hold {form.holds}, which are no paragraphs; `cotrail data build` makes a corpus"
        )
    if form == STRATEGYQA_PARAGRAPHS:
        return _members(path)
    of_entry = strategyqa_evidence.facts if form and "strategyqa" in form.datasets else question_contexts.of_entry
    return _entries(path, of_entry) if is_list(path, CorpusError) else _lines(path)


def _entries(
    path: Path, of_entry: Callable[[str, bytes], Iterator[tuple[str, str]]]
) -> Iterator[tuple[str, Paragraph]]:
    with opened(path, CorpusError) as file:
        for place, raw in json_streams.items(file, str(path)):
            yield from ((place, identified(title, text)) for title, text in of_entry(place, raw))


def _members(path: Path) -> Iterator[tuple[str, Paragraph]]:
    with opened(path, CorpusError) as file:
        for place, raw in json_streams.members(file, str(path)):
            yield place, strategyqa_evidence.paragraph(place, raw)


def _lines(path: Path) -> Iterator[tuple[str, Paragraph]]:
    for place, raw in lines(path, CorpusError, total=None):
        line = decode(raw, _LineKeys, place, CorpusError)
        if line.paragraphs:
            yield from ((place, identified(title, text)) for title, text in question_contexts.of_line(place, raw))
        elif line.contexts:
            yield from ((place, identified(title, text)) for title, text in question_contexts.of_processed(place, raw))
        else:
            yield place, _paragraph(raw, place)


def _paragraph(raw: bytes, place: str) -> Paragraph:
    paragraph = decode(raw, Paragraph, place, CorpusError)
    if not paragraph.id.strip():
        raise CorpusError(f"{place}: the id is empty; give each paragraph its own")
    return paragraph
