"""BrowseComp-Plus (Chen et al. 2025): hard questions about a fixed corpus, with judgments by people.

Its repository's script decrypts the questions to lines of JSON, with their answers, and to topics without them; the
judgments are in its folder `topics-qrels`.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode, records
from cotrail.data.datasets import spec, trec
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


def _read(
    topics: Callable[[Path], Iterable[trec.Topic]], judgments: str, path: Path, lookup: spec.ParagraphLookup | None
) -> Iterator[spec.QuestionRecord]:
    return trec.read(topics, path, _judgments(path, judgments), lookup)


def _judgments(path: Path, name: str) -> Path:
    """The file of that name next to the questions, or in the repository's folder next to them or next to theirs."""
    folders = (path.parent, path.parent / FOLDER, path.parent.parent / FOLDER)
    if found := next((file for folder in folders if (file := folder / name).is_file()), None):
        return found
    raise DatasetError(f"{path}: its judgments {name} aren't there; put them next to it, or keep the folder {FOLDER}")


def _spec(name: str, judgments: str) -> spec.DatasetSpec:
    return spec.dataset(
        name,
        spec.QuestionForm(
            # Without a header: as the first form it is that of files in no known format.
            format=spec.FileFormat("BrowseComp-Plus' topics", False, frozenset({"qid", "query"})),
            read=partial(_read, trec.topic_lines, judgments),
            written=trec.joined,
        ),
        spec.QuestionForm(
            format=spec.FileFormat("BrowseComp-Plus' questions", False, frozenset({"query_id", "query", "answer"})),
            read=partial(_read, question_lines, judgments),
        ),
    )


SPEC = _spec("browsecomp-plus", EVIDENCE)
ANSWERING = _spec("browsecomp-plus-gold", GOLD)
