"""Relevance judgments (qrels) in the forms of TREC and of BEIR: which documents of a corpus a question needs."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from msgspec import Struct

from cotrail.common.humanize import count
from cotrail.common.text_files import line_text, lines
from cotrail.common.validation import shown
from cotrail.core.questions import MOST_GRADE, GoldParagraph
from cotrail.data.datasets.annotated import ParagraphLookup
from cotrail.errors import DatasetError

_GRADE = re.compile(r"[+-]?[0-9]{1,18}")

PROBED = 1_000
"""The relevant documents by which another corpus than the judged one is noticed."""


class Judgment(Struct, frozen=True, kw_only=True):
    """A line of a file of judgments: a document of the corpus and its grade, which is above 0 where it is relevant."""

    place: str
    raw: bytes
    question: str
    document: str
    grade: int


Judgments = Mapping[str, Mapping[str, Judgment]]
"""The judgments of each question by document, both in the order of the file."""


def trec_judgments(path: Path) -> Judgments:
    """The judgments of a file of lines `question iteration document grade`, with any white space between.

    DatasetError: a line isn't of that form; and as in `grouped`.
    """
    return grouped(_trec_lines(path))


def _trec_lines(path: Path) -> Iterator[Judgment]:
    for place, raw in lines(path, DatasetError):
        cells = line_text(raw, place, DatasetError).split()
        if len(cells) != 4:
            raise DatasetError(
                f"{place}: {len(cells)} fields, and a judgment has four, as `q1 0 doc7 1`; correct the line"
            )
        question, _, document, grade = cells
        yield judgment(place, raw, question, document, grade)


def judgment(place: str, raw: bytes, question: str, document: str, grade: str) -> Judgment:
    """The judgment in a line; DatasetError where the grade is no whole number, or too high."""
    if not _GRADE.fullmatch(grade) or (number := int(grade)) > MOST_GRADE:
        raise DatasetError(
            f"{place}: the grade is {shown(grade)}; it has to be a whole number up to {MOST_GRADE:,}, so correct it"
        )
    return Judgment(place=place, raw=raw, question=question, document=document, grade=number)


def grouped(judgments: Iterable[Judgment]) -> Judgments:
    """The judgments by question and document; DatasetError where a document is judged twice and differently."""
    grouped: dict[str, dict[str, Judgment]] = {}
    for each in judgments:
        before = grouped.setdefault(each.question, {}).setdefault(each.document, each)
        if before.grade != each.grade:
            raise DatasetError(
                f"{each.place}: the document {each.document!r} has the grade {each.grade}, and {before.grade} at "
                f"{before.place}; leave one of them"
            )
    return grouped


def gold_of(judgments: Iterable[Judgment], lookup: ParagraphLookup | None) -> tuple[GoldParagraph, ...]:
    """The relevant documents of a question as gold, by their ids.

    lookup: gives the titles of those that the corpus has. What it lacks stays, since it counts in recall.
    """
    relevant = [each for each in judgments if each.grade > 0]
    found = lookup([each.document for each in relevant]) if lookup else {}
    titles = {id_: paragraph.title for id_, paragraph in found.items()}
    return tuple(
        GoldParagraph(title=titles.get(each.document, ""), text="", id=each.document, by="id", grade=each.grade)
        for each in relevant
    )


def check_judges(path: Path, judgments: Judgments, lookup: ParagraphLookup | None) -> None:
    """Raise DatasetError where the corpus has none of the first relevant documents: then it isn't the judged one."""
    every = (each for documents in judgments.values() for each in documents.values() if each.grade > 0)
    ids = [each.document for each in islice(every, PROBED)]
    if lookup and ids and not lookup(ids):
        raise DatasetError(
            f"{path}: the corpus has none of the first {count(len(ids), 'relevant document')}, {ids[0]!r} for one; "
            "name the corpus that these judgments are about"
        )
