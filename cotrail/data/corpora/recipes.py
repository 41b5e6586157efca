"""Recipes for building each dataset's corpus from its published files (IRCoT, appendix A)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from cotrail.common.nearest import unknown
from cotrail.data.corpora import hotpotqa_abstracts, iirc_articles, json_streams, question_contexts
from cotrail.errors import UnknownNameError


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


RECIPES = {
    "hotpotqa": Recipe(
        needs="the unpacked dump of Wikipedia's abstracts, a folder of wiki_*.bz2",
        seems="to be a bz2 archive",
        files=hotpotqa_abstracts.files,
        records=hotpotqa_abstracts.records,
        paragraphs=hotpotqa_abstracts.paragraphs,
        paper_paragraphs=5_233_329,
    ),
    "2wikimultihopqa": Recipe(
        needs="2WikiMultihopQA's train.json, dev.json and test.json",
        seems="to hold 2WikiMultihopQA's questions",
        records=json_streams.items,
        paragraphs=question_contexts.of_entry,
        paper_paragraphs=430_225,
    ),
    "musique": Recipe(
        needs="MuSiQue's six files musique_*_v1.0_*.jsonl",
        seems="to hold MuSiQue's questions",
        records=question_contexts.lines,
        paragraphs=question_contexts.of_line,
        paper_paragraphs=139_416,
    ),
    "iirc": Recipe(
        needs="IIRC's context_articles.json",
        seems="to hold IIRC's articles",
        records=json_streams.members,
        paragraphs=iirc_articles.paragraphs,
        shuffles=True,
        paper_paragraphs=1_882_415,
    ),
}


def find_recipe(dataset: str) -> Recipe:
    """The recipe for a dataset's corpus; UnknownNameError lists the known ones."""
    if dataset not in RECIPES:
        raise UnknownNameError(unknown("corpus to build for", dataset, RECIPES))
    return RECIPES[dataset]
