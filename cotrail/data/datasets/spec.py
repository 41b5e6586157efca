"""A dataset as one record: how its files are read, what its answers are scored by, and where it comes from."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from cotrail.common.printable_text import is_blank
from cotrail.common.refusals import shown
from cotrail.common.text_files import MAX_ID_BYTES, MAX_PARAGRAPH_CHARACTERS
from cotrail.common.toml_files import read_toml
from cotrail.core.questions import GoldParagraph, Paragraph, Question, QuestionSort
from cotrail.errors import InputError
from cotrail.faithfulness.tasks import Task


class Recipe(Struct, frozen=True, kw_only=True):
    """Recipe for one corpus.

    needs: the files that it is made from, in words; seems: what `apparent_content` says of such a file.
    files: expands the named paths to files.
    records: yields the records of a file with their places.
    paragraphs: yields the titles and texts of a record, given its place, its bytes and the seed.
    shuffles: whether the seed matters; paper_paragraphs: the paper's number of paragraphs (footnote 18).
    """

    needs: str
    seems: str | None
    files: Callable[[Sequence[Path]], tuple[Path, ...]] = tuple
    records: Callable[[BinaryIO, str], Iterator[tuple[str, bytes]]]
    paragraphs: Callable[[str, bytes, int], Iterable[tuple[str, str]]]
    shuffles: bool = False
    paper_paragraphs: int


RuleName = Literal["hotpotqa", "squad", "drop", "kilt", "label"]
"""The rules by which answers are scored: exact match and F1 of HotpotQA's script, of SQuAD's, of DROP's for several
spans, and of KILT's; or whether a label is the right one. They are in `cotrail.evaluation.metrics.answer_scores`."""


class Scoring(Struct, frozen=True):
    """How a dataset's questions are scored.

    rule: for its answers; long_answers: whether they are scored by ROUGE-L too.
    any_script: whether texts may be in other scripts than Latin, so that paragraphs aren't compared by ASCII alone.
    """

    rule: RuleName
    long_answers: bool = False
    any_script: bool = False


ParagraphLookup = Callable[[Sequence[str]], Mapping[str, Paragraph]]
"""Looks up paragraphs of a corpus by their ids; missing ones are left out."""

YES_OR_NO = {True: "yes", False: "no"}
"""The answers of yes/no questions."""


class AnnotatedQuestion(Struct, frozen=True, kw_only=True):
    """A question and the rest of its record.

    distractors: the paragraphs of its context that are neither gold nor pinned; empty where the dataset has none.
    chain: the annotated sentences that lead to the answer, the last one stating it; empty where there are none.
    """

    question: Question
    distractors: tuple[GoldParagraph, ...] = ()
    chain: tuple[str, ...] = ()


class QuestionRecord(Struct, frozen=True, kw_only=True):
    """A question as a file holds it.

    place: its position, e.g. `dev.jsonl, line 3`; raw: its bytes, a valid record of the same format.
    """

    place: str
    raw: bytes
    annotated: AnnotatedQuestion


class ContextParagraph(Struct, frozen=True):
    """A paragraph of a question's context, as MuSiQue's files and those of IRCoT's authors have it."""

    title: str
    paragraph_text: str
    is_supporting: bool = False

    def flagged(self) -> tuple[GoldParagraph, bool]:
        """The paragraph, and whether it supports the answer."""
        return GoldParagraph(title=self.title, text=self.paragraph_text), self.is_supporting


def parted(
    context: Iterable[tuple[GoldParagraph, bool]],
) -> tuple[tuple[GoldParagraph, ...], tuple[GoldParagraph, ...]]:
    """Split a context into supporting and other paragraphs, each once and in order.

    A paragraph that occurs twice is supporting if either occurrence is.
    """
    paragraphs: dict[GoldParagraph, bool] = {}
    for paragraph, supporting in context:
        paragraphs[paragraph] = paragraphs.get(paragraph, False) or supporting
    return (
        tuple(paragraph for paragraph, supporting in paragraphs.items() if supporting),
        tuple(paragraph for paragraph, supporting in paragraphs.items() if not supporting),
    )


def id_of(*texts: str) -> str:
    """The id of a question that is published without one: the SHA-256 of its text, and of what else tells it apart."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def accepted_answers(names: Iterable[str]) -> tuple[str, ...]:
    """Answers any of which is right: stripped, each once, and without empty ones."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, names))))


def spans_as_answer(spans: Sequence[str]) -> str:
    """An answer as questions hold it: the text of a single span, or a JSON list of several."""
    return spans[0] if len(spans) == 1 else msgspec.json.encode(spans).decode()


class FileFormat(Struct, frozen=True):
    """A file format; holds: its content, for messages.

    is_list: whether it is one JSON list; None where any form of records will do (`cotrail.common.json_files.records`).
    has, lacks: keys that its first record has, and that it hasn't. one_of: keys of which it has one, in any case, where
        there are some. inside: keys of that record's first value.
    begins: how the file begins, in place of all these, where it has no keys.
    """

    holds: str
    is_list: bool | None = None
    has: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    one_of: frozenset[str] = frozenset()
    inside: frozenset[str] = frozenset()
    begins: str = ""


FORMATS = msgspec.convert(read_toml(Path(__file__).with_name("formats.toml")), dict[str, FileFormat])
"""The formats of publishers' files."""

ReadQuestions = Callable[[Path, ParagraphLookup | None], Iterator[QuestionRecord]]


class QuestionForm(Struct, frozen=True, kw_only=True):
    """A form in which a dataset's questions are published.

    read: yields the questions of a file; the lookup resolves paragraphs that the file gives by id, where it can.
    paragraphs: yields titles and texts of the paragraphs in a record, given its place and its bytes; None where records
        hold none.
    paragraphs_key: the key of a record under which they stand, by which records that lack other keys are known too.
    written: makes a file of records drawn from that path; None for a list, or for lines, as the format is.
    suffix: of such a file, where it isn't that of the format, or of that path where `written` makes it.
    snippets: whether gold is parts of paragraphs, which `located` of the metrics resolves.
    """

    format: FileFormat
    read: ReadQuestions
    paragraphs: Callable[[str, bytes], Iterable[tuple[str, str]]] | None = None
    paragraphs_key: str = ""
    written: Callable[[Path, Sequence[bytes]], bytes] | None = None
    suffix: str = ""
    snippets: bool = False


class DatasetDescription(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of a dataset, and how its questions are scored; cotrail's own are described in `datasets.toml`.

    files: the publishers' files that can be read; source: where to get them; asks: what its questions ask for.
    metric: what an answer is scored by; kinds: the names of the questions' kinds, with what they say; empty for none.
    scoring: how its questions are scored.
    task: of Rethinking with Retrieval; sort: of question, for Search-in-the-Chain; each sets what a system asks for it.
    companion: a file that belongs next to the questions, since it has a part of their answers.
    processed_lacks: what the official metric needs and files that the authors of IRCoT processed lack, and the file of
        the dataset that has it.
    """

    title: str
    files: str
    source: str
    asks: str
    metric: str
    kinds: str = ""
    scoring: Scoring
    task: Task | None = None
    sort: QuestionSort | None = None
    companion: str = ""
    processed_lacks: str = ""


class DatasetSpec(DatasetDescription, frozen=True, kw_only=True):
    """A dataset.

    name: as `--dataset` takes it.
    forms: the forms of its files; one that is in no known format is read in the first.
    recipe: for its corpus, if one can be built.
    """

    name: str
    forms: tuple[QuestionForm, ...]
    recipe: Recipe | None = None


DESCRIBED = msgspec.convert(read_toml(Path(__file__).with_name("datasets.toml")), dict[str, DatasetDescription])


def dataset(name: str, *forms: QuestionForm, recipe: Recipe | None = None) -> DatasetSpec:
    """The dataset of that name as `datasets.toml` describes it; KeyError where it doesn't."""
    return DatasetSpec(name=name, forms=forms, recipe=recipe, **asdict(DESCRIBED[name]))


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def check_id(id_: str, place: str, error: type[InputError]) -> None:
    """Raise the error where an id is empty, too long for an index of the database, or not on one line."""
    if not id_.strip():
        raise error(f"{place}: the id is empty; give each record its own")
    if (size := len(id_.encode())) > MAX_ID_BYTES:
        raise error(f"{place}: the id has {size:,} bytes, and at most {MAX_ID_BYTES:,} are taken; shorten it")
    if _CONTROL.search(id_):
        raise error(f"{place}: the id {shown(id_)} holds a line break or another control character; take it out")


def check_text(text: str, what: str, place: str, error: type[InputError]) -> None:
    """Raise the error where a text is empty or too long; what: its name in the error, e.g. `question`."""
    if is_blank(text):
        raise error(f"{place}: the {what} is empty; fill it in or take the record out")
    check_length(len(text), what, place, error)


def check_length(characters: int, what: str, place: str, error: type[InputError]) -> None:
    """Raise the error where a text of so many characters is too long."""
    if characters > MAX_PARAGRAPH_CHARACTERS:
        most = f"{MAX_PARAGRAPH_CHARACTERS:,}"
        raise error(f"{place}: the {what} has {characters:,} characters, and {most} is the most; divide it")
