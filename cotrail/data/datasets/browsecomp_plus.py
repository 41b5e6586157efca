"""BrowseComp-Plus (Chen et al. 2025): hard questions about a fixed corpus, with judgments by people.

Its repository's script decrypts the questions to lines of JSON, with their answers, and to topics without them; the
judgments are in its folder `topics-qrels`.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode, records
from cotrail.data.datasets import trec
from cotrail.data.datasets.spec import DatasetSpec, FileFormat, ParagraphLookup, QuestionForm, QuestionRecord, Scoring
from cotrail.errors import DatasetError

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


def question_lines(path: Path) -> Iterator[trec.Topic]:
    """The questions of a decrypted file."""
    for place, raw in records(path, DatasetError, total=None):  # lines hold documents, and only samples keep them
        line = decode(raw, _Question, place, DatasetError)
        yield trec.Topic(place=place, raw=raw, id=str(line.query_id), text=line.query, answers=(line.answer,))


def _read(judgments: str, path: Path, lookup: ParagraphLookup | None) -> Iterator[QuestionRecord]:
    return trec.read(question_lines, path, _judgments(path, judgments), lookup)


def _read_topics(judgments: str, path: Path, lookup: ParagraphLookup | None) -> Iterator[QuestionRecord]:
    return trec.read(trec.topic_lines, path, _judgments(path, judgments), lookup)


def _judgments(path: Path, name: str) -> Path:
    """The file of that name next to the questions, or in the repository's folder next to them or next to theirs."""
    folders = (path.parent, path.parent / FOLDER, path.parent.parent / FOLDER)
    if found := next((file for folder in folders if (file := folder / name).is_file()), None):
        return found
    raise DatasetError(f"{path}: its judgments {name} aren't there; put them next to it, or keep the folder {FOLDER}")


def _spec(name: str, title: str, judgments: str, asks: str) -> DatasetSpec:
    return DatasetSpec(
        name=name,
        title=title,
        files=f"browsecomp_plus_decrypted.jsonl, or queries.tsv, with {judgments} next to it or in {FOLDER}",
        source="https://github.com/texttron/BrowseComp-Plus",
        asks=asks,
        metric="exact match and F1, as SQuAD's script; NDCG and recall, as trec_eval",
        forms=(
            QuestionForm(
                # Without a header: as the first form it is that of files in no known format.
                format=FileFormat("BrowseComp-Plus' topics", False, frozenset({"qid", "query"})),
                read=partial(_read_topics, judgments),
                written=trec.joined,
            ),
            QuestionForm(
                format=FileFormat("BrowseComp-Plus' questions", False, frozenset({"query_id", "query", "answer"})),
                read=partial(_read, judgments),
            ),
        ),
        scoring=Scoring("squad", any_script=True),
    )


SPEC = _spec(
    "browsecomp-plus",
    "BrowseComp-Plus",
    EVIDENCE,
    "short facts that take many searches to find; the documents needed for it are gold",
)
ANSWERING = _spec(
    "browsecomp-plus-gold",
    "BrowseComp-Plus by the documents that hold the answer",
    GOLD,
    "the same; only documents that hold the answer are gold",
)
