"""Completion of the files that the authors of IRCoT processed by answers from a dataset's own file.

Their `evaluate.py --official` does the same: it reads the answers from the datasets' own files.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from cotrail.core.questions import Question
from cotrail.data.datasets.wikimultihop import ALIASES
from cotrail.errors import DatasetError

LACKING = {
    "2wikimultihopqa": f"the ids of answers, by which {ALIASES} has their other names: dev.json of the dataset",
    "musique": "the aliases of answers: musique_ans_v1.0_dev.jsonl",
}
"""Data that the official metric needs and a processed file lacks, and the file that has it."""


def check_whole(dataset: str, what: str) -> None:
    """Raise DatasetError where processed questions of the dataset can't be scored without its own file."""
    if dataset in LACKING:
        raise DatasetError(
            f"{what} has questions as the authors of IRCoT processed them, which lack {LACKING[dataset]} has them. "
            "Name that file with --official, or as `official` where a file describes the run"
        )


def check_aliases(dataset: str, official: Path) -> None:
    """Raise DatasetError where 2WikiMultihopQA's aliases of answers aren't beside its own file."""
    if dataset == "2wikimultihopqa" and not (official.parent / ALIASES).is_file():
        raise DatasetError(f"{ALIASES} isn't beside {official}, and the official metric needs it; put it there")


def completed(questions: Sequence[Question], published: Mapping[str, Question], official: Path) -> tuple[Question, ...]:
    """Replace the questions' answers and kinds by those of their dataset's own file, matched by id.

    Raises DatasetError where a question isn't in that file.
    """
    if lost := [question.id for question in questions if question.id not in published]:
        raise DatasetError(
            f"{len(lost):,} of {len(questions):,} questions aren't in {official}, {lost[0]!r} for one; "
            "give the file of the split that they are from"
        )
    own = ((question, published[question.id]) for question in questions)
    return tuple(replace(question, answers=known.answers, kinds=known.kinds) for question, known in own)
