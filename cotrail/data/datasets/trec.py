"""Topics of TREC and of those who publish like it (MS MARCO, TREC's Deep Learning track) and BEIR, with judgments.

Lines of `id<TAB>text`, or topics between `<top>` and `</top>` with a number and a title. Answers aren't published, so
what a run found is scored and not what it answered.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.humanize import count
from cotrail.common.json_files import decode, records
from cotrail.common.refusals import shown
from cotrail.common.text_files import MAX_SMALL_FILE_BYTES, line_text, lines, read_text, rows
from cotrail.core.questions import MOST_GRADE, GoldParagraph, Question
from cotrail.data.datasets import infotabs, spec
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


def _trec_lines(path: Path) -> Iterator[Judgment]:
    """The judgments of a file of lines `question iteration document grade`, with any white space between."""
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


def gold_of(judgments: Iterable[Judgment], lookup: spec.ParagraphLookup | None) -> tuple[GoldParagraph, ...]:
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


def check_judges(path: Path, judgments: Judgments, lookup: spec.ParagraphLookup | None) -> None:
    """Raise DatasetError where the corpus has none of the first relevant documents: then it isn't the judged one."""
    every = (each for documents in judgments.values() for each in documents.values() if each.grade > 0)
    ids = [each.document for each in islice(every, PROBED)]
    if lookup and ids and not lookup(ids):
        raise DatasetError(
            f"{path}: the corpus has none of the first {count(len(ids), 'relevant document')}, {ids[0]!r} for one; "
            "name the corpus that these judgments are about"
        )


MARK = "qrel"
"""What the name of a file of judgments has somewhere, in lower case."""

_LABELS = ("Number:", "Topic:", "Description:", "Narrative:")
"""What may stand before the text of an element."""


class Topic(Struct, frozen=True, kw_only=True):
    """A topic: its id and its text, and its place and its bytes in the file."""

    place: str
    raw: bytes
    id: str
    text: str
    answers: tuple[str, ...] = ()


def read(
    topics: Callable[[Path], Iterable[Topic]],
    judging: Callable[[Path], Path],
    path: Path,
    lookup: spec.ParagraphLookup | None,
) -> Iterator[spec.QuestionRecord]:
    """The topics of a file as questions, those that are judged at all; gold: what is relevant by its judgments."""
    judged_by = judging(path)
    judgments = grouped(_trec_lines(judged_by))
    check_judges(judged_by, judgments, lookup)
    asked = 0
    for topic in topics(path):
        if topic.id in judgments:
            asked += 1
            yield _record(topic, judgments, lookup)
    if not asked:
        raise DatasetError(
            f"{judged_by} judges no document for any topic of {path}; give judgments and topics of one set"
        )


def _record(topic: Topic, judgments: Judgments, lookup: spec.ParagraphLookup | None) -> spec.QuestionRecord:
    gold = gold_of(judgments[topic.id].values(), lookup)
    question = Question(id=topic.id, text=topic.text, answers=topic.answers, gold=gold)
    return spec.QuestionRecord(place=topic.place, raw=topic.raw, annotated=spec.AnnotatedQuestion(question=question))


def judgments_beside(path: Path) -> Path:
    """The only file of judgments in the folder of the topics; DatasetError where there is none, or several."""
    found = sorted(file for file in path.parent.iterdir() if MARK in file.name.lower() and file != path)
    if len(found) != 1:
        has = f"are {len(found)} ({', '.join(file.name for file in found)})" if found else "is none"
        raise DatasetError(
            f"{path}: judgments belong in the same folder, in one file with {MARK!r} in its name, and there {has}; "
            "leave the one there that judges your corpus"
        )
    return found[0]


def topic_lines(path: Path) -> Iterator[Topic]:
    """The topics of a file of lines `id<TAB>text`; a cell isn't quoted."""
    for place, raw in lines(path, DatasetError):
        cells = line_text(raw, place, DatasetError).split("\t")
        if len(cells) != 2:
            raise DatasetError(
                f"{place}: {len(cells)} cells, and a topic has two, its id and its text; correct the line"
            )
        yield Topic(place=place, raw=raw, id=cells[0].strip(), text=cells[1].strip())


def topic_elements(path: Path) -> Iterator[Topic]:
    """The topics of a file of elements: `<num>` gives the id and `<title>` the text, the others are read past."""
    start: int | None = None
    topic: list[str] = []
    for number, line in enumerate(read_text(path, DatasetError, MAX_SMALL_FILE_BYTES).split("\n"), start=1):
        if line.lstrip().startswith("<top>"):
            start, topic = number, []
        if start is not None:
            topic.append(line)
        if start is not None and line.strip().endswith("</top>"):
            yield _topic(f"{path}, line {start}", topic)
            start = None
    if start is not None:
        raise DatasetError(f"{path}, line {start}: this topic has no end </top>; add it, or get the file again")


def _topic(place: str, lines_: Sequence[str]) -> Topic:
    elements: dict[str, list[str]] = {}
    name = ""
    for line in lines_:
        stripped = line.strip()
        if stripped.startswith("<") and not stripped.startswith("</"):
            name, _, stripped = stripped[1:].partition(">")
        elements.setdefault(name, []).append(stripped.removesuffix(f"</{name}>"))
    if missing := [name for name in ("num", "title") if name not in elements]:
        raise DatasetError(f"{place}: this topic has no <{missing[0]}>; add it, or take the topic out")
    number, title = (_text(elements[name]) for name in ("num", "title"))
    # The first topics are numbered `051`, and judged as `51`.
    return Topic(place=place, raw="\n".join(lines_).encode(), id=number.lstrip("0") or number, text=title)


def _text(element: Sequence[str]) -> str:
    text = " ".join(" ".join(line for line in element if not line.startswith("</")).split())
    return next((text.removeprefix(label).strip() for label in _LABELS if text.startswith(label)), text)


def joined(_path: Path, records: Sequence[bytes]) -> bytes:
    """A file of these topics."""
    return b"".join(raw + b"\n" for raw in records)


SPEC = spec.dataset(
    "trec",
    spec.QuestionForm(
        # Mostly without a header: as the first form it is that of files in no known format.
        format=spec.FORMATS["trec_lines"],
        read=partial(read, topic_lines, judgments_beside),
        written=joined,
    ),
    spec.QuestionForm(
        format=spec.FORMATS["trec_topics"], read=partial(read, topic_elements, judgments_beside), written=joined
    ),
)


# BrowseComp-Plus (Chen et al. 2025): hard questions about a fixed corpus, with judgments by people. Its repository's
# script decrypts the questions to lines of JSON, with their answers, and to topics without them.

FOLDER = "topics-qrels"
"""The folder of the judgments."""

EVIDENCE = "qrel_evidence.txt"
"""The judgments of documents that are needed, by which the publishers' recall is."""

GOLD = "qrel_golds.txt"
"""Those of the documents among them that hold the answer."""


class _Question(Struct, frozen=True):
    """A question as decrypted; its documents are read past."""

    query_id: int | str
    query: str
    answer: str


def question_lines(path: Path) -> Iterator[Topic]:
    """The questions of a decrypted file."""
    for place, raw in records(path, DatasetError, total=None):  # lines hold documents, and only samples keep them
        line = decode(raw, _Question, place, DatasetError)
        yield Topic(place=place, raw=raw, id=str(line.query_id), text=line.query, answers=(line.answer,))


def _judgments(name: str, path: Path) -> Path:
    """The file of that name next to the questions, or in the repository's folder next to them or next to theirs."""
    folders = (path.parent, path.parent / FOLDER, path.parent.parent / FOLDER)
    if found := next((file for folder in folders if (file := folder / name).is_file()), None):
        return found
    raise DatasetError(f"{path}: its judgments {name} aren't there; put them next to it, or keep the folder {FOLDER}")


def _browsecomp_plus(name: str, judgments: str) -> spec.DatasetSpec:
    judging = partial(_judgments, judgments)
    return spec.dataset(
        name,
        spec.QuestionForm(
            # Without a header: as the first form it is that of files in no known format.
            format=spec.FORMATS["browsecomp_topics"],
            read=partial(read, topic_lines, judging),
            written=joined,
        ),
        spec.QuestionForm(format=spec.FORMATS["browsecomp_questions"], read=partial(read, question_lines, judging)),
    )


BROWSECOMP_PLUS = _browsecomp_plus("browsecomp-plus", EVIDENCE)
BROWSECOMP_PLUS_GOLD = _browsecomp_plus("browsecomp-plus-gold", GOLD)


# Data sets in BEIR's form (Thakur et al. 2021): a folder of `corpus.jsonl`, `queries.jsonl` and `qrels/*.tsv`.
#
# The questions are given as the judgments of a split, e.g. `scifact/qrels/test.tsv`: those queries are asked that it
# judges. Where queries have no answers among their metadata, what a run found is scored and not what it answered.

BEIR_COLUMNS = ("query-id", "corpus-id", "score")

BEIR_QUERIES = "queries.jsonl"
"""The file of the queries, in the folder that has the folder of the judgments."""


class _Query(Struct, frozen=True):
    id: str = msgspec.field(name="_id")
    text: str
    metadata: Any = None

    @property
    def answers(self) -> tuple[str, ...]:
        """Those that some sets keep among what else they say of a query."""
        match self.metadata:
            case {"answers": list() as texts}:
                return spec.accepted_answers(each for each in texts if isinstance(each, str))
        return ()


def read_beir(path: Path, lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the queries that a file judges, in its order; gold: the documents that are relevant by it."""
    judgments = _beir_judgments(path)
    check_judges(path, judgments, lookup)
    queries = _beir_queries(path.parent.parent / BEIR_QUERIES, path)
    for id_, documents in judgments.items():
        first, *_ = judged = list(documents.values())
        if id_ not in queries:
            raise DatasetError(f"{first.place}: {BEIR_QUERIES} has no query {id_!r}; get both files from one place")
        question = Question(id=id_, text=queries[id_].text, answers=queries[id_].answers, gold=gold_of(judged, lookup))
        raw = b"\n".join(each.raw.strip() for each in judged)
        yield spec.QuestionRecord(place=first.place, raw=raw, annotated=spec.AnnotatedQuestion(question=question))


def _beir_judgments(path: Path) -> Judgments:
    table = rows(path, tuple((name,) for name in BEIR_COLUMNS), DatasetError)
    return grouped(judgment(place, raw, *(cells[name] for name in BEIR_COLUMNS)) for place, raw, cells in table)


def _beir_queries(path: Path, judged_by: Path) -> dict[str, _Query]:
    if not path.is_file():
        raise DatasetError(f"{judged_by}: its queries {path} aren't there; keep the folders as they are published")
    queries = (decode(raw, _Query, place, DatasetError) for place, raw in lines(path, DatasetError))
    return {query.id: query for query in queries}


BEIR = spec.dataset(
    "beir", spec.QuestionForm(format=spec.FORMATS["beir"], read=read_beir, written=infotabs.written, suffix=".tsv")
)
