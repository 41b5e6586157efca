"""Data sets in BEIR's form (Thakur et al. 2021): a folder of `corpus.jsonl`, `queries.jsonl` and `qrels/*.tsv`.

The questions are given as the judgments of a split, e.g. `scifact/qrels/test.tsv`: those queries are asked that it
judges. Where queries have no answers among their metadata, what a run found is scored and not what it answered.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode, lines
from cotrail.common.text_files import rows
from cotrail.core.questions import Question
from cotrail.data.datasets import infotabs, spec
from cotrail.data.datasets.trec import Judgments, check_judges, gold_of, grouped, judgment
from cotrail.errors import DatasetError

COLUMNS = ("query-id", "corpus-id", "score")

QUERIES = "queries.jsonl"
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


def read(path: Path, lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the queries that a file judges, in its order; gold: the documents that are relevant by it."""
    judgments = _judgments(path)
    check_judges(path, judgments, lookup)
    queries = _queries(path.parent.parent / QUERIES, path)
    for id_, documents in judgments.items():
        first, *_ = judged = list(documents.values())
        if id_ not in queries:
            raise DatasetError(f"{first.place}: {QUERIES} has no query {id_!r}; get both files from one place")
        question = Question(id=id_, text=queries[id_].text, answers=queries[id_].answers, gold=gold_of(judged, lookup))
        raw = b"\n".join(each.raw.strip() for each in judged)
        yield spec.QuestionRecord(place=first.place, raw=raw, annotated=spec.AnnotatedQuestion(question=question))


def _judgments(path: Path) -> Judgments:
    table = rows(path, tuple((name,) for name in COLUMNS), DatasetError)
    return grouped(judgment(place, raw, *(cells[name] for name in COLUMNS)) for place, raw, cells in table)


def _queries(path: Path, judged_by: Path) -> dict[str, _Query]:
    """The queries by id."""
    if not path.is_file():
        raise DatasetError(f"{judged_by}: its queries {path} aren't there; keep the folders as they are published")
    queries = (decode(raw, _Query, place, DatasetError) for place, raw in lines(path, DatasetError))
    return {query.id: query for query in queries}


SPEC = spec.dataset(
    "beir",
    spec.QuestionForm(
        format=spec.FileFormat("BEIR's judgments", False, frozenset(COLUMNS)),
        read=read,
        written=infotabs.written,
        suffix=".tsv",
    ),
)
