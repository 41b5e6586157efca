"""Loading of question files in the formats of publishers, which are detected: a file has to be of the named dataset.

Completion of the files that the authors of IRCoT processed by answers from a dataset's own file.

Their `evaluate.py --official` does the same: it reads the answers from the datasets' own files.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import ijson
from msgspec.structs import replace

from cotrail.common.json_files import OversizeError, columns, events
from cotrail.common.tables import COLUMNAR, PLACES, TABLES
from cotrail.common.tables import form_of as record_form
from cotrail.common.text_files import LONGEST_HEADER, header, opened
from cotrail.core.questions import Paragraph, Question
from cotrail.data.datasets import ircot_processed, jsonl, spec, trec
from cotrail.data.datasets.registry import datasets_in, find_dataset, question_formats
from cotrail.data.datasets.sampling import drawn
from cotrail.data.datasets.spec import FORMATS, FileFormat
from cotrail.errors import DatasetError, InputError

FIRST_KEYS = 40
"""Maximum keys of the first record that are examined."""

FIRST_EVENTS = 100_000
"""Maximum JSON events that are read for them."""

STRATEGYQA_PARAGRAPHS, MULTIHOP_RAG_ARTICLES = FORMATS["strategyqa_paragraphs"], FORMATS["multihop_rag_articles"]

OTHER_FORMATS = (
    *(STRATEGYQA_PARAGRAPHS, MULTIHOP_RAG_ARTICLES, FORMATS["2wikimultihopqa_aliases"]),
    *(FORMATS["hotpotqa_abstracts"], FORMATS["corpus"]),
)
"""Formats of files that hold no questions."""

ARTICLES = FORMATS["iirc_articles"]

_BEGINNINGS = {
    b"BZh": "a bz2 archive",
    b"PK\x03\x04": "a zip archive (as .xlsx and .docx are, too)",
    b"\xfd7zXZ": "an xz archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"%PDF": "a PDF",
    b"SQLite format 3": "an SQLite database",
    b"GGUF": "a GGUF model",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"\x7fELF": "a program",
    b"<": "a web page",
}


def detect_format(path: Path, formats: Iterable[FileFormat], error: type[InputError]) -> FileFormat | None:
    """The format of the file, one of these or of `OTHER_FORMATS`; None where it isn't a known one."""
    return next(iter(fitting_formats(path, formats, error)), None)


def fitting_formats(path: Path, formats: Iterable[FileFormat], error: type[InputError]) -> list[FileFormat]:
    """All formats that the file may have, the likeliest first; none where it has no known one."""
    form = record_form(path, error)
    is_list, keys, inside, start = False, list[str](), list[str](), b""
    if form in COLUMNAR:
        keys = list(columns(path, error))
    else:
        with opened(path, error) as file:
            begin = file.tell()
            is_list, keys, inside = _first_record(file)
            file.seek(begin)
            start = file.read(512).lstrip()
            file.seek(begin)
            keys = keys or (header(file.readline(LONGEST_HEADER)) if form in TABLES else [])
    fitting = [each for each in chain(formats, OTHER_FORMATS) if _fits(each, start, is_list, keys, inside)]
    return fitting or ([ARTICLES] if len(keys) == FIRST_KEYS and not is_list else [])


def apparent_content(path: Path, formats: Iterable[FileFormat], error: type[InputError]) -> str | None:
    """What a file seems, e.g. `to hold MuSiQue's questions` or `to be a web page`; None where it isn't recognised."""
    if format_ := detect_format(path, formats, error):
        return f"to hold {format_.holds}"
    if record_form(path, error) in COLUMNAR:
        return None
    with opened(path, error) as file:
        start = file.read(512)
    if content := next((what for mark, what in _BEGINNINGS.items() if start.lstrip().startswith(mark)), None):
        return f"to be {content}"
    return "to be binary data" if b"\0" in start else None


def _fits(
    each: FileFormat,
    start: bytes,
    is_list: bool,  # noqa: FBT001
    keys: Collection[str],
    inside: Collection[str],
) -> bool:
    if each.begins:
        return start.startswith(each.begins.encode())
    has = each.has <= set(keys) and each.inside <= set(inside) and each.lacks.isdisjoint(keys)
    one_of = not each.one_of or not each.one_of.isdisjoint(key.casefold() for key in keys)
    return each.is_list in (None, is_list) and has and one_of


def _first_record(file: BinaryIO) -> tuple[bool, list[str], list[str]]:
    """Return whether the file is a list, the keys of its first record, and the keys of that record's first value."""
    keys: list[str] = []
    inside: list[str] = []
    is_list = False
    with suppress(OversizeError, ijson.JSONError, UnicodeDecodeError):
        for depth, (event, value) in islice(events(file, multiple_values=True), FIRST_EVENTS):
            is_list = is_list or (depth, event) == (0, "start_array")
            record = 1 if is_list else 0
            if event == "map_key" and depth == record + 1:
                keys.append(value)
            elif event == "map_key" and depth == 2 and len(keys) == 1:
                inside.append(value)
            if (event == "end_map" and depth == record) or len(keys) == FIRST_KEYS:
                break
    return is_list, keys, inside


NO_MAP: Mapping[str, str] = MappingProxyType({})
"""Fields have usual names."""


def check_whole(dataset: spec.DatasetSpec, what: str) -> None:
    """Raise DatasetError where processed questions of the dataset can't be scored without its own file."""
    if dataset.processed_lacks:
        raise DatasetError(
            f"{what} has questions as the authors of IRCoT processed them, which lack {dataset.processed_lacks} has "
            "them. Name that file with --official, or as `official` where a file describes the run"
        )


def check_companion(dataset: spec.DatasetSpec, official: Path) -> None:
    """Raise DatasetError where the file that belongs next to the dataset's own one isn't there."""
    companion = dataset.companion
    if companion and not (official.parent / companion).is_file():
        raise DatasetError(f"{companion} isn't next to {official}, and the official metric needs it; put it there")


def completed(questions: Sequence[Question], published: Mapping[str, Question], official: Path) -> tuple[Question, ...]:
    """Replace the questions' answers and kinds by those of their dataset's own file, matched by id.

    Raises DatasetError where a question isn't in that file.
    """
    if missing := [question.id for question in questions if question.id not in published]:
        raise DatasetError(
            f"{len(missing):,} of {len(questions):,} questions aren't in {official}, {missing[0]!r} for one; "
            "give the file of the split that they are from"
        )
    own = ((question, published[question.id]) for question in questions)
    return tuple(replace(question, answers=answer.answers, kinds=answer.kinds) for question, answer in own)


def load_questions(
    dataset: str,
    path: Path,
    lookup: spec.ParagraphLookup | None = None,
    official: Path | None = None,
    fields: Mapping[str, str] = NO_MAP,
) -> tuple[Question, ...]:
    """Load the questions of a file in its order; DatasetError names the bad record or the dataset that the file is of.

    Questions that the dataset marks as unanswerable are left out.
    lookup: resolves gold paragraphs that a file gives by id (`jsonl`, StrategyQA), e.g. `TantivyRetriever.paragraphs`.
    official: the dataset's own file, from which processed questions of 2WikiMultihopQA and MuSiQue take their answers.
    fields: the names that fields of questions of your own have in the file, where these aren't usual ones.
    """
    questions = tuple(each.annotated.question for each in read_records(dataset, path, lookup, fields))
    if form_of(dataset, path, fields).format != ircot_processed.FORMAT:
        if official:
            raise DatasetError(f"{path} is the dataset's own file already; leave out {official} as its official one")
        return questions
    published = load_official(dataset, official, str(path))
    return completed(questions, published, official) if official else questions


def load_official(dataset: str, official: Path | None, what: str) -> dict[str, Question]:
    """Load the questions of the dataset's own file by id; empty where no file is given.

    what: names the processed questions in the DatasetError that says that the own file is required.
    """
    if official is None:
        check_whole(find_dataset(dataset), what)
        return {}
    check_companion(find_dataset(dataset), official)
    return {question.id: question for question in load_questions(dataset, official)}


def load_annotated(
    dataset: str, path: Path, lookup: spec.ParagraphLookup | None = None
) -> tuple[spec.AnnotatedQuestion, ...]:
    """Load the questions with the other paragraphs of their records, and with the chains that annotators wrote."""
    return tuple(record.annotated for record in read_records(dataset, path, lookup))


def read_records(
    dataset: str, path: Path, lookup: spec.ParagraphLookup | None = None, fields: Mapping[str, str] = NO_MAP
) -> Iterator[spec.QuestionRecord]:
    """Read the questions with their places and their bytes; fields: as in `load_questions`."""
    ids = set()
    for record in form_of(dataset, path, fields).read(path, lookup):
        question = record.annotated.question
        _check(question, record.place)
        if question.id in ids:
            if question.id == spec.id_of(question.text):
                raise DatasetError(f"{record.place}: this question is there before; take it out, or give each an id")
            raise DatasetError(f"{record.place}: a question before has the id {question.id!r} too; give each its own")
        ids.add(question.id)
        yield record
    if not ids:
        raise DatasetError(f"{path} holds no questions; check that it is the right file")


def _check(question: Question, place: str) -> None:
    spec.check_id(question.id, place, DatasetError)
    spec.check_text(question.text, "question", place, DatasetError)
    for paragraph in (*question.gold, *([question.pinned] if question.pinned else [])):
        spec.check_length(len(paragraph.title) + len(paragraph.text), "paragraph", place, DatasetError)


def form_of(dataset: str, path: Path, fields: Mapping[str, str] = NO_MAP) -> spec.QuestionForm:
    """The form of a file of the dataset's; DatasetError where the file seems to hold something else.

    fields: as in `load_questions`. UnknownNameError where there is no dataset of that name.
    """
    forms = find_dataset(dataset).forms
    if fields and dataset != jsonl.SPEC.name:
        raise DatasetError(f"a map of fields is for questions of your own (`jsonl`); leave it out for {dataset!r}")
    if fields:
        return replace(forms[-1], read=partial(jsonl.read, fields=fields))
    folder = path if path.is_dir() else path.parent
    if (folder / "qrels").is_dir() and path in (folder, folder / trec.BEIR_QUERIES):
        raise DatasetError(
            f"{path} is of a data set in BEIR's form; name the dataset 'beir', and the judgments of a split, as "
            f"{folder / 'qrels' / 'test.tsv'}"
        )
    formats = fitting_formats(path, question_formats(), DatasetError)
    # What fits the named dataset is read as such, whatever else it may be: no two refusals name each other's datasets.
    if form := next((each for each in forms if each.format in formats), None):
        return form
    if others := datasets_in(formats):
        names = " or ".join(map(repr, others))
        record = PLACES.get(record_form(path, DatasetError), "line")
        raise DatasetError(
            f"{path}, {record} 1: this seems to be from {formats[0].holds}; "
            f"name the dataset {names} instead of {dataset!r}, or give another file"
        )
    if dataset != jsonl.SPEC.name and (columnar := record_form(path, DatasetError)) in COLUMNAR:
        there = jsonl.listed(columns(path, DatasetError))
        raise DatasetError(
            f"{path}: this {columnar} file has the fields {there}, and not those of {dataset!r}; name the dataset "
            "'jsonl', and the field that is the question with `--map question=FIELD`"
        )
    if what := apparent_content(path, question_formats(), DatasetError):
        raise DatasetError(f"{path} seems {what}, going by how it begins, and no questions; give another file")
    return forms[0]


def reading_of(dataset: str, path: Path, fields: Mapping[str, str] = NO_MAP) -> str:
    """How a file that can be loaded is read: `questions.csv: read as CSV; question=query, answers=gold_answer`."""
    form = form_of(dataset, path, fields)
    if dataset != jsonl.SPEC.name:
        return f"{path.name}: read as {record_form(path, DatasetError) or 'text'}; {form.format.holds}"
    said = f"{path.name}: {jsonl.described(path, fields)}"
    seem = next(iter(fitting_formats(path, question_formats(), DatasetError)), form.format)
    match datasets_in([seem]):
        case (name,) if name != dataset and seem.has - set(chain.from_iterable(jsonl.NAMES.values())):
            return f"{said}; these may be {seem.holds}, which `--dataset {name}` scores by its own rules"
    return said


def sample_file(dataset: str, path: Path, development: int, test: int, seed: int) -> tuple[bytes, bytes]:
    """Make the same draw from a file; returns the contents of two files of the same format, records unchanged.

    An IIRC question comes with its passage, without the passage's other questions.
    """
    # Gold paragraphs that are given by id get placeholders: a draw doesn't need the corpus.
    records = list(read_records(dataset, path, lambda ids: {id_: Paragraph(id=id_, title="", text="") for id_ in ids}))
    first, second = drawn(records, lambda record: record.annotated.question.id, development, test, seed)
    return _content(dataset, path, first), _content(dataset, path, second)


def suffix(dataset: str, path: Path) -> str:
    """The suffix for files that are drawn from this one."""
    form = form_of(dataset, path)
    return form.suffix or (path.suffix if form.written else ".json" if form.format.is_list else ".jsonl")


def _content(dataset: str, path: Path, records: Iterable[spec.QuestionRecord]) -> bytes:
    form, stripped = form_of(dataset, path), [record.raw.strip() for record in records]
    if form.written:
        return form.written(path, stripped)
    if form.format.is_list:
        return b"[" + b",\n".join(stripped) + b"]\n"
    return b"".join(raw + b"\n" for raw in stripped)
