"""Reading of corpus files: paragraphs as JSON Lines, the contexts of question files, or documents."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.json_files import beginning, decode, is_list, is_object, lines
from cotrail.common.text_files import opened
from cotrail.common.tsv_files import is_tsv
from cotrail.core.paragraphs import Paragraph
from cotrail.data.corpora import documents, json_streams, passages, question_contexts, strategyqa_evidence
from cotrail.data.corpora.digest_set import BYTES, DigestSet
from cotrail.data.corpora.paragraph_ids import content, identified
from cotrail.data.datasets.file_formats import (
    ARTICLES,
    BIG_BENCH,
    STRATEGYQA_PARAGRAPHS,
    FileFormat,
    apparent_content,
    detect_format,
)
from cotrail.data.record_checks import check_id, check_length
from cotrail.errors import CorpusError

ACCEPTED = (
    'accepted are lines of JSON such as {"id": "1", "title": "...", "text": "..."}, a tab-separated table (.tsv) whose '
    "first line is `id<TAB>title<TAB>text`, and Markdown (.md) and text files (.txt), or a folder of these two"
)
"""What a corpus may be made of, for errors."""

CONTEXTS = {"hotpotqa", "2wikimultihopqa", "musique", "strategyqa"}
"""Datasets whose own question files hold paragraphs; processed files of any dataset do."""


def read_corpus(paths: Sequence[Path]) -> Iterator[Paragraph]:
    """Yield the paragraphs of the files in their order, each content once, under the first of its ids.

    A folder holds documents (`documents`). A file holds paragraphs under the names that `passages` knows (lines, a list
    or a table), StrategyQA's paragraphs, questions of HotpotQA, 2WikiMultihopQA, MuSiQue or StrategyQA (whose facts are
    taken), questions that the authors of IRCoT processed, or a document; its content tells which. Paragraphs of
    question files get ids made from their text.
    Memory: only digests are kept, about 60 bytes a paragraph.
    CorpusError: a record can't be used, an id names two paragraphs, or there is no paragraph at all.
    """
    contents, ids, named = DigestSet(), DigestSet(), DigestSet()
    empty = True
    for path in paths:
        for place, paragraph in _read(path, paths):
            _check(place, paragraph)
            new_name = named.add(_short(f"{paragraph.id}\0{paragraph.digest}"))
            if not ids.add(_short(paragraph.id)) and new_name:
                raise CorpusError(f"{place}: the id {paragraph.id!r} names another paragraph before; give it another")
            if contents.add(content(paragraph)):
                empty = False
                yield paragraph
    if empty:
        raise CorpusError(f"no paragraphs in {', '.join(map(str, paths)) or 'no files'}; check that these are right")


def _check(place: str, paragraph: Paragraph) -> None:
    check_id(paragraph.id, place, CorpusError)
    length = len(paragraph.id) + len(paragraph.title) + len(paragraph.text)
    check_length(length, "paragraph", place, CorpusError)


def _short(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:BYTES]


class _Keys(Struct, frozen=True):
    """The keys that tell the kinds of records apart."""

    paragraphs: msgspec.Raw = msgspec.Raw()
    contexts: msgspec.Raw = msgspec.Raw()
    context: msgspec.Raw = msgspec.Raw()


def _read(path: Path, paths: Sequence[Path]) -> Iterator[tuple[str, Paragraph]]:
    """The paragraphs of a file or a folder, which is one of several."""
    if path.is_dir():
        root = documents.root_of(paths)
        return chain.from_iterable(documents.read_document(file, root) for file in documents.look_into(path).documents)
    if _is_document(path):
        return documents.read_document(path, documents.root_of(paths))
    form = detect_format(path, CorpusError)
    if form in (ARTICLES, BIG_BENCH) or (form and form.datasets and CONTEXTS.isdisjoint(form.datasets)):
        raise CorpusError(
            f"{path} seems to hold {form.holds}, which are no paragraphs; give a file of "
            "paragraphs, or make a dataset's corpus with `cotrail data build`"
        )
    if form is None and (what := apparent_content(path, CorpusError)):
        raise CorpusError(f"{path} seems {what}, going by how it begins; unpack or convert it: {ACCEPTED}")
    if form == STRATEGYQA_PARAGRAPHS:
        return _members(path)
    if is_list(path, CorpusError):
        return _entries(path, form)
    if is_tsv(path, CorpusError):
        return passages.of_rows(path)
    if not is_object(path, CorpusError):
        raise CorpusError(f"{path} begins with {beginning(path, CorpusError)}, which is no paragraph; {ACCEPTED}")
    return _lines(path)


def _is_document(path: Path) -> bool:
    """Return whether a file is a document, going by its name; paragraphs may stand in a file of that name too."""
    has_paragraphs = is_object(path, CorpusError) or is_list(path, CorpusError) or is_tsv(path, CorpusError)
    return documents.is_document(path) and (documents.is_markdown(path) or not has_paragraphs)


def _entries(path: Path, form: FileFormat | None) -> Iterator[tuple[str, Paragraph]]:
    read = _of_form(form) if form else None
    with opened(path, CorpusError) as file:
        for place, raw in json_streams.items(file, str(path)):
            read = read or (_contexts if decode(raw, _Keys, place, CorpusError).context else _of_record)
            yield from read(place, raw)


def _of_form(form: FileFormat) -> Callable[[str, bytes], Iterator[tuple[str, Paragraph]]]:
    return _facts if "strategyqa" in form.datasets else _contexts


def _facts(place: str, raw: bytes) -> Iterator[tuple[str, Paragraph]]:
    return _identified(place, strategyqa_evidence.facts(place, raw))


def _contexts(place: str, raw: bytes) -> Iterator[tuple[str, Paragraph]]:
    return _identified(place, question_contexts.of_entry(place, raw))


def _members(path: Path) -> Iterator[tuple[str, Paragraph]]:
    with opened(path, CorpusError) as file:
        for place, raw in json_streams.members(file, str(path)):
            yield place, strategyqa_evidence.paragraph(place, raw)


def _lines(path: Path) -> Iterator[tuple[str, Paragraph]]:
    for place, raw in lines(path, CorpusError, total=None):
        yield from _of_record(place, raw)


def _of_record(place: str, raw: bytes) -> Iterator[tuple[str, Paragraph]]:
    if not (b'"paragraphs"' in raw or b'"contexts"' in raw):  # decoded once only: dumps have millions of lines
        return iter(((place, passages.of_object(place, raw)),))
    keys = decode(raw, _Keys, place, CorpusError)
    if keys.paragraphs:
        return _identified(place, question_contexts.of_line(place, raw))
    if keys.contexts:
        return _identified(place, question_contexts.of_processed(place, raw))
    return iter(((place, passages.of_object(place, raw)),))


def _identified(place: str, found: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Paragraph]]:
    return ((place, identified(title, text)) for title, text in found)
