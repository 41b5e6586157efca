"""Completion of the files that the authors of IRCoT processed by answers from a dataset's own file.

Their `evaluate.py --official` does the same: it reads the answers from the datasets' own files.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from cotrail.core.questions import Question
from cotrail.data.datasets.spec import DatasetSpec
from cotrail.errors import DatasetError


def check_whole(dataset: DatasetSpec, what: str) -> None:
    """Raise DatasetError where processed questions of the dataset can't be scored without its own file."""
    if dataset.processed_lacks:
        raise DatasetError(
            f"{what} has questions as the authors of IRCoT processed them, which lack {dataset.processed_lacks} has "
            "them. Name that file with --official, or as `official` where a file describes the run"
        )


def check_companion(dataset: DatasetSpec, official: Path) -> None:
    """Raise DatasetError where the file that belongs beside the dataset's own one isn't there."""
    companion = dataset.companion
    if companion and not (official.parent / companion).is_file():
        raise DatasetError(f"{companion} isn't beside {official}, and the official metric needs it; put it there")


def completed(questions: Sequence[Question], published: Mapping[str, Question], official: Path) -> tuple[Question, ...]:
    """Replace the questions' answers and kinds by those of their dataset's own file, matched by id.

    Raises DatasetError where a question isn't in that file.
    """
    if missing := [question.id for question in questions if question.id not in published]:
        raise DatasetError(
            f"{len(missing):,} of {len(questions):,} questions aren't in {official}, {missing[0]!r} for one; "
            "give the file of the split that they are from"
        )
    own = ((question, published[question.id]) for question in questions)
    return tuple(replace(question, answers=answer.answers, kinds=answer.kinds) for question, answer in own)
