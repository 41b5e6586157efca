"""2WikiMultihopQA's files (`train.json`, `dev.json`, `test.json`): HotpotQA's format, plus aliases of answers.

The release with ids (`data_ids`) has `answer_id` and a file `id_aliases.json`: Wikidata's aliases and demonyms of an
answer count as correct too (Alab-NII/2wikimultihop, `2wikimultihop_evaluate_v1.1.py`). They are used if that file lies
next to the questions.
"""

from collections.abc import Container, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode, lines, records
from cotrail.data.corpora import hotpotqa_abstracts
from cotrail.data.datasets import flashrag, hotpotqa, ircot_processed, spec
from cotrail.data.datasets.hub_rows import published, row_paragraphs
from cotrail.errors import DatasetError

ALIASES = "id_aliases.json"
"""The file of aliases, next to the questions."""


class WikiMultihopQuestion(hotpotqa.HotpotQuestion, frozen=True):
    """A question as published; in test files answers and supporting facts are empty."""

    answer_id: str | None = None


class _Names(Struct, frozen=True):
    """Aliases of an entity of Wikidata; a line of `id_aliases.json`."""

    id: str = msgspec.field(name="Q_id")
    aliases: tuple[str, ...] = ()
    demonyms: tuple[str, ...] = ()


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file, all at once: the aliases file is large, and only the ids in use are kept of it."""
    questions = [
        (place, raw, decode(published(place, raw), WikiMultihopQuestion, place, DatasetError))
        for place, raw in records(path, DatasetError)
    ]
    names = _names(path.parent / ALIASES, {entry.answer_id for *_, entry in questions if entry.answer_id})
    for place, raw, entry in questions:
        answers = (entry.answer, *names.get(entry.answer_id or "", ())) if entry.answer else ()
        annotated = hotpotqa.annotated(entry, tuple(dict.fromkeys(answers)))
        yield spec.QuestionRecord(place=place, raw=raw, annotated=annotated)


def _names(path: Path, ids: Container[str]) -> dict[str, tuple[str, ...]]:
    """Aliases and demonyms of the wanted entities."""
    if not path.is_file():
        return {}
    entries = (decode(raw, _Names, place, DatasetError) for place, raw in lines(path, DatasetError))
    return {each.id: (*each.aliases, *each.demonyms) for each in entries if each.id in ids}


SPEC = spec.dataset(
    "2wikimultihopqa",
    spec.QuestionForm(
        format=spec.FileFormat(
            "2WikiMultihopQA's questions", True, frozenset({"_id", "question", "context", "evidences"})
        ),
        read=read,
        paragraphs=row_paragraphs,
        paragraphs_key="context",
    ),
    hotpotqa.row_form("2WikiMultihopQA's questions", read, has=frozenset({"evidences"})),
    ircot_processed.form("2wikimultihopqa"),
    flashrag.form(type="type"),
    recipe=spec.Recipe(
        needs="2WikiMultihopQA's train.json, dev.json and test.json",
        seems="to hold 2WikiMultihopQA's questions",
        records=hotpotqa_abstracts.items,
        paragraphs=hotpotqa.paragraphs,
        paper_paragraphs=430_225,
    ),
)
