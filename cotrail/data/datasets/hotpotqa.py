"""HotpotQA's files (`hotpot_*_v1*.json`): a list of questions, each with its paragraphs."""

from collections.abc import Iterator
from pathlib import Path

from cotrail.common.json_files import decode, entries
from cotrail.data.corpora import hotpotqa_abstracts
from cotrail.data.corpora.recipe import Recipe
from cotrail.data.datasets import flashrag, ircot_processed
from cotrail.data.datasets.hotpotqa_records import HotpotQuestion, annotated, paragraphs
from cotrail.data.datasets.spec import DatasetSpec, FileFormat, ParagraphLookup, QuestionForm, QuestionRecord, Scoring
from cotrail.errors import DatasetError


def read(path: Path, _lookup: ParagraphLookup | None) -> Iterator[QuestionRecord]:
    """Read the questions of a file."""
    for place, raw in entries(path, DatasetError):
        entry = decode(raw, HotpotQuestion, place, DatasetError)
        answers = () if entry.answer is None else (entry.answer,)
        yield QuestionRecord(place=place, raw=bytes(raw), annotated=annotated(entry, answers))


SPEC = DatasetSpec(
    name="hotpotqa",
    title="HotpotQA",
    files=f"hotpot_train_v1.1.json, hotpot_dev_distractor_v1.json, {ircot_processed.FILES}, {flashrag.FILES}",
    source="https://hotpotqa.github.io",
    asks="two-step questions about Wikipedia",
    metric="exact match and F1, as its own script",
    kinds="type: bridge, comparison; level: easy, medium, hard",
    forms=(
        QuestionForm(
            format=FileFormat(
                "HotpotQA's questions", True, frozenset({"_id", "context", "level"}), frozenset({"evidences"})
            ),
            read=read,
            paragraphs=paragraphs,
            paragraphs_key="context",
        ),
        ircot_processed.form("hotpotqa"),
        flashrag.form(type="type", level="level"),
    ),
    scoring=Scoring("hotpotqa"),
    recipe=Recipe(
        needs="the unpacked dump of Wikipedia's abstracts, a folder of wiki_*.bz2",
        seems="to be a bz2 archive",
        files=hotpotqa_abstracts.files,
        records=hotpotqa_abstracts.records,
        paragraphs=hotpotqa_abstracts.paragraphs,
        paper_paragraphs=5_233_329,
    ),
)
