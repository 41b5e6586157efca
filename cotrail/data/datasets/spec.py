"""A dataset as one record: how its files are read, what its answers are scored by, and where it comes from."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from cotrail.core.question_kinds import QuestionSort
from cotrail.data.corpora.recipe import Recipe
from cotrail.data.datasets.annotated import ParagraphLookup, QuestionRecord
from cotrail.data.datasets.scoring import Scoring
from cotrail.faithfulness.tasks import Task


class FileFormat(Struct, frozen=True):
    """A file format; holds: its content, for messages.

    has, lacks: keys that its first record has, and that it hasn't. inside: keys of that record's first value.
    begins: how the file begins, in place of all these, where it has no keys.
    """

    holds: str
    is_list: bool
    has: frozenset[str]
    lacks: frozenset[str] = frozenset()
    inside: frozenset[str] = frozenset()
    begins: bytes = b""


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
    read: Callable[[Path, ParagraphLookup | None], Iterator[QuestionRecord]]
    paragraphs: Callable[[str, bytes], Iterable[tuple[str, str]]] | None = None
    paragraphs_key: str = ""
    written: Callable[[Path, Sequence[bytes]], bytes] | None = None
    suffix: str = ""
    snippets: bool = False


class DatasetSpec(Struct, frozen=True, kw_only=True):
    """A dataset.

    name: as `--dataset` takes it.
    files: the publishers' files that can be read; source: where to get them; asks: what its questions ask for.
    metric: what an answer is scored by; kinds: the names of the questions' kinds, with what they say; empty for none.
    forms: the forms of its files; one that is in no known format is read in the first.
    scoring: how its questions are scored.
    task: of Rethinking with Retrieval; sort: of question, for Search-in-the-Chain; each sets what a system asks for it.
    recipe: for its corpus, if one can be built.
    companion: a file that belongs beside the questions, since it has a part of their answers.
    processed_lacks: what the official metric needs and files that the authors of IRCoT processed lack, and the file of
        the dataset that has it.
    """

    name: str
    title: str
    files: str
    source: str
    asks: str
    metric: str
    kinds: str = ""
    forms: tuple[QuestionForm, ...]
    scoring: Scoring
    task: Task | None = None
    sort: QuestionSort | None = None
    recipe: Recipe | None = None
    companion: str = ""
    processed_lacks: str = ""
