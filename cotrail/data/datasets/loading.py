"""Loading of question files in the publishers' formats, after a check that a file is of the named dataset.

Completion of the files that the authors of IRCoT processed by answers from a dataset's own file.

Their `evaluate.py --official` does the same: it reads the answers from the datasets' own files.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

from cotrail.common.json_files import columns
from cotrail.common.tables import COLUMNAR, PLACES
from cotrail.common.tables import form_of as record_form
from cotrail.core.questions import Paragraph, Question
from cotrail.data.datasets import beir, ircot_processed, jsonl, spec
from cotrail.data.datasets.format_detection import apparent_content, fitting_formats
from cotrail.data.datasets.registry import datasets_in, find_dataset, question_formats
from cotrail.data.datasets.sampling import drawn
from cotrail.errors import DatasetError

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
    if (folder / "qrels").is_dir() and path in (folder, folder / beir.QUERIES):
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


# Files of sampled questions, in the format of the file that they are drawn from.


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
