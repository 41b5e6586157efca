"""Reading of corpus files: paragraphs as JSON Lines, the contexts of question files, or documents."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict

from cotrail.common import tables
from cotrail.common.json_files import beginning, columns, decode, is_object, records
from cotrail.common.printable_text import cut
from cotrail.common.refusals import refusal
from cotrail.common.text_files import opened
from cotrail.core.questions import FiledParagraph, Paragraph
from cotrail.data.corpora import document_names, documents, hotpotqa_abstracts
from cotrail.data.corpora.paragraph_ids import DIGEST_BYTES, DigestSet, identified
from cotrail.data.datasets import loading, multihop_rag, strategyqa
from cotrail.data.datasets.jsonl import listed, misspelt
from cotrail.data.datasets.registry import question_formats, question_forms
from cotrail.data.datasets.spec import QuestionForm, check_id, check_length, check_text
from cotrail.errors import CorpusError

# Paragraphs under the names by which corpora are published: cotrail's own, BEIR's, Pyserini's and DPR's.

IDS = ("id", "_id", "docid", "doc_id")
TITLES = ("title", "wikipedia_title")
TEXTS = ("text", "contents", "passage")
BODIES = ("body", "content", "document", "article")
"""The names of texts that are cut into passages; those of `TEXTS` are passages already."""

LONGEST_TITLE = 255
"""Maximum characters of the first line of `contents` for it to be a title: Wikipedia's have at most 255 bytes."""


class _Line(Struct, frozen=True):
    """A paragraph as written; metadata, url: read past."""

    id: str | int | UnsetType | None = UNSET
    _id: str | int | UnsetType | None = UNSET
    docid: str | int | UnsetType | None = UNSET
    doc_id: str | int | UnsetType | None = UNSET
    title: str | UnsetType | None = UNSET
    wikipedia_title: str | UnsetType | None = UNSET
    text: str | UnsetType = UNSET
    contents: str | UnsetType = UNSET
    passage: str | UnsetType = UNSET
    body: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    document: str | UnsetType = UNSET
    article: str | UnsetType = UNSET
    metadata: Any = None
    url: Any = None


_FIELDS = frozenset(_Line.__struct_fields__)


Kinds = Mapping[str, str]
"""The fields of metadata that are kept with paragraphs, and the kind of each, `word` or `number`."""


def of_object(place: str, raw: bytes, fields: Kinds = MappingProxyType({})) -> Iterator[Paragraph]:
    """The paragraphs of a JSON object; CorpusError names the field that is missing, ambiguous, misspelt or empty."""
    record = decode(raw, dict[str, Any], place, CorpusError)
    kept = kept_fields(record, fields, place) if fields else {}
    known = _known({name: value for name, value in record.items() if name not in fields}, place)
    try:
        paragraphs = _paragraphs(msgspec.convert(known, _Line), place)
        return (FiledParagraph(**asdict(each), fields=kept) for each in paragraphs) if kept else paragraphs
    except msgspec.ValidationError as cause:
        raise CorpusError(f"{place}: {refusal(cause, _Line, known)}; correct the record or take it out") from cause


def kept_fields(record: Mapping[str, Any], kinds: Kinds, place: str) -> dict[str, tuple[str | float, ...]]:
    """The metadata of a record, several values of a list; CorpusError names a value that isn't of its field's kind."""
    kept = {}
    for name, kind in kinds.items():
        given = value if isinstance(value := record.get(name), list | tuple) else [value]
        said = f"{place}: the field {name!r}"
        if values := tuple(_value(each, kind, said) for each in given if each not in (None, "")):
            kept[name] = values
    return kept


def _value(given: object, kind: str, named: str) -> str | float:
    value = str(given).lower() if isinstance(given, bool) else given
    if isinstance(value, str | int | float):
        if kind == "word":
            return str(value)
        with suppress(ValueError, OverflowError):
            if isfinite(number := float(value)):
                return number
    raise CorpusError(f"{named} has {cut(repr(given), 50)}, which is no {kind}; correct it, or leave out the field")


def _known(record: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The fields that are read, in small letters."""
    if "text" in record and record.keys() <= _FIELDS:  # as in nearly all dumps, of millions of records
        return dict(record)
    fields = {name.lower(): value for name, value in record.items()}
    known = {name: value for name, value in fields.items() if name in _FIELDS}
    absent = [name for names in (TITLES, TEXTS) if not known.keys() & set(names) for name in names]
    if wrong := misspelt([name for name in fields if name not in known], absent):
        raise CorpusError(f"{place}: there is no key {wrong}; correct the name, or remove what it has")
    if not known.keys() & {*TEXTS, *BODIES}:
        texts = " or ".join(f"`{name}`" for name in (*TEXTS, *BODIES))
        raise CorpusError(f"{place}: there is no field {texts} (but {listed(fields)}); rename the text's")
    return known


def _paragraphs(line: _Line, place: str) -> Iterator[Paragraph]:
    (id_field, id_), (title_field, title), (text_field, text) = (
        _one_of(line, names, place) for names in (IDS, TITLES, (*TEXTS, *BODIES))
    )
    if text_field == "contents" and not title_field:
        title, text = _titled(text)
    # BEIR publishes documents of a title alone, such as TREC-COVID's articles without an abstract.
    if not (id_field == "_id" and title.strip()):
        check_text(text, "text", place, CorpusError)
    pieces = list(documents.passages(documents.BLANK_LINES.split(text))) if text_field in BODIES else [text]
    for number, piece in enumerate(pieces, start=1):
        own = f"{id_}#{number}" if len(pieces) > 1 else id_
        yield Paragraph(id=own, title=title, text=piece) if id_field else identified(title, piece)


def _one_of(line: _Line, names: tuple[str, ...], place: str) -> tuple[str, str]:
    """The only one of the fields that is given, and its value; both empty where none is."""
    values = [(name, str(value)) for name in names if isinstance(value := getattr(line, name), str | int)]
    if len(values) > 1:
        both = " and ".join(f"`{name}`" for name, _ in values)
        raise CorpusError(f"{place}: {both} mean the same; leave one of them")
    return values[0] if values else ("", "")


def _titled(contents: str) -> tuple[str, str]:
    """Title and text of Pyserini's `contents`: the first line is the title, in quotation marks in DPR's Wikipedia."""
    first, _, rest = contents.partition("\n")
    if not rest.strip() or len(first) > LONGEST_TITLE:
        return "", contents
    title = first.strip()
    quoted = len(title) > 1 and title.startswith('"') and title.endswith('"')
    return (title[1:-1].replace('""', '"') if quoted else title), rest.strip("\n")


ACCEPTED = (
    'accepted are records such as {"id": "1", "title": "...", "text": "..."} as JSON Lines, CSV, a tab-separated table '
    "(.tsv) or Parquet, and Markdown (.md), text (.txt), HTML and PDF files, or a folder of these"
)
"""What a corpus may be made of, for errors."""

_IN_TEXTS = ("JSON", "JSON Lines", "TSV")
"""The forms of records that files named as texts may have."""

KeyedForms = dict[bytes, QuestionForm]
"""Forms of lists, or of lines, by the quoted keys under which questions have their paragraphs."""


def read_corpus(
    paths: Sequence[Path], fields: Kinds = MappingProxyType({}), repeated: Callable[[str], object] = str
) -> Iterator[Paragraph]:
    """Yield the paragraphs of the files in their order, each content and metadata once, under its first id.

    A folder holds documents (`documents`), or files of records. A file holds paragraphs under the names above, in any
    form of records, StrategyQA's paragraphs, MultiHop-RAG's articles (which are cut into passages), questions that have
    their paragraphs with them (of StrategyQA the facts are taken), or a document; its content tells which. Paragraphs
    that have no ids get some made from their text. repeated: is called with the ids that are left out.
    Memory: only digests are kept, about 60 bytes a paragraph.
    CorpusError: a record can't be used, an id names two paragraphs, or there is no paragraph at all.
    """
    contents, ids, digests_of_names = DigestSet(), DigestSet(), DigestSet()
    empty = True
    for path in paths:
        for place, paragraph in _read(path, paths, fields):
            _check(place, paragraph)
            new_name = digests_of_names.add(_short(f"{paragraph.id}\0{paragraph.digest}"))
            if not ids.add(_short(paragraph.id)) and new_name:
                raise CorpusError(f"{place}: the id {paragraph.id!r} names another paragraph before; give it another")
            own = str(sorted(paragraph.fields.items())) if isinstance(paragraph, FiledParagraph) else ""
            if contents.add(_short(f"{paragraph.digest}{own}")):
                empty = False
                yield paragraph
            elif new_name:
                repeated(paragraph.id)
    if empty:
        raise CorpusError(f"no paragraphs in {', '.join(map(str, paths)) or 'no files'}; check that these are right")


def _check(place: str, paragraph: Paragraph) -> None:
    check_id(paragraph.id, place, CorpusError)
    length = len(paragraph.id) + len(paragraph.title) + len(paragraph.text)
    check_length(length, "paragraph", place, CorpusError)


def _short(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:DIGEST_BYTES]


def _read(path: Path, paths: Sequence[Path], fields: Kinds) -> Iterator[tuple[str, Paragraph]]:
    """The paragraphs of a file or a folder, which is one of several."""
    if path.is_dir() and not tables.is_saved(path):
        root, files = documents.root_of(paths), documents.look_into(path).documents
        return chain.from_iterable(
            documents.read_document(file, root) if document_names.is_document(file) else _read(file, paths, fields)
            for file in files
        )
    if not path.is_dir() and _is_document(path):
        return documents.read_document(path, documents.root_of(paths))
    format_ = loading.detect_format(path, question_formats(), CorpusError)
    form = next((form for form in question_forms() if form.format == format_), None)
    is_document = form is not None and form.format.one_of and {*TEXTS, *BODIES} & set(columns(path, CorpusError))
    if format_ and (format_ == loading.ARTICLES or (form and not form.paragraphs and not is_document)):
        raise CorpusError(
            f"{path} seems to hold {format_.holds}, which are no paragraphs; give a file of "
            "paragraphs, or make a dataset's corpus with `cotrail data build`"
        )
    if format_ is None and (what := loading.apparent_content(path, question_formats(), CorpusError)):
        raise CorpusError(f"{path} seems {what}, going by how it begins; unpack or convert it: {ACCEPTED}")
    if format_ == loading.STRATEGYQA_PARAGRAPHS:
        return _members(path)
    if format_ == loading.MULTIHOP_RAG_ARTICLES:
        return _articles(path)
    kind = tables.form_of(path, CorpusError)
    if kind == "JSON":
        return _entries(path, form, fields)
    if kind is None or (kind == "JSON Lines" and not is_object(path, CorpusError)):
        raise CorpusError(f"{path} begins with {beginning(path, CorpusError)}, which is no paragraph; {ACCEPTED}")
    return _records(path, fields)


def _is_document(path: Path) -> bool:
    """Return whether a file is a document, going by its name; paragraphs may stand in a file of that name too."""
    is_text = document_names.suffix(path) == ".txt"
    return document_names.is_document(path) and not (is_text and tables.form_of(path, CorpusError) in _IN_TEXTS)


def _members(path: Path) -> Iterator[tuple[str, Paragraph]]:
    with opened(path, CorpusError) as file:
        for place, raw in hotpotqa_abstracts.members(file, str(path)):
            yield place, strategyqa.evidence_paragraph(place, raw)


def _articles(path: Path) -> Iterator[tuple[str, Paragraph]]:
    with opened(path, CorpusError) as file:
        for place, raw in hotpotqa_abstracts.items(file, str(path)):
            for title, passage in multihop_rag.article_passages(place, raw):
                yield place, identified(title, passage)


def _entries(path: Path, form: QuestionForm | None, fields: Kinds) -> Iterator[tuple[str, Paragraph]]:
    """The paragraphs of a list: of questions, as its first entry is, or of records that are each looked at."""
    as_list, lined = _keyed_forms(is_list=True), _keyed_forms(is_list=False)
    with opened(path, CorpusError) as file:
        for number, (place, raw) in enumerate(hotpotqa_abstracts.items(file, str(path))):
            if number == 0:
                form = form or _form_of(place, raw, as_list)
            yield from _identified(place, raw, form) if form else _of_record(place, raw, lined, fields)


def _records(path: Path, fields: Kinds) -> Iterator[tuple[str, Paragraph]]:
    forms = _keyed_forms(is_list=False)
    for place, raw in records(path, CorpusError, total=None):
        yield from _of_record(place, raw, forms, fields)


def _keyed_forms(*, is_list: bool) -> KeyedForms:
    forms = [form for form in question_forms() if form.paragraphs_key and form.format.is_list in (None, is_list)]
    return {f'"{form.paragraphs_key}"'.encode(): form for form in forms}


def _of_record(place: str, raw: bytes, forms: KeyedForms, fields: Kinds) -> Iterator[tuple[str, Paragraph]]:
    if form := _form_of(place, raw, forms):
        return _identified(place, raw, form)
    return ((place, paragraph) for paragraph in of_object(place, raw, fields))


def _form_of(place: str, raw: bytes, forms: KeyedForms) -> QuestionForm | None:
    """The form of the questions that have their paragraphs under a key of this record."""
    if not any(key in raw for key in forms):  # decoded once only: dumps have millions of lines
        return None
    keys = decode(raw, dict[str, msgspec.Raw], place, CorpusError)
    return next((form for form in forms.values() if form.paragraphs_key in keys), None)


def _identified(place: str, raw: bytes, form: QuestionForm) -> Iterator[tuple[str, Paragraph]]:
    contents = form.paragraphs(place, raw) if form.paragraphs else ()
    return ((place, identified(title, text)) for title, text in contents)
