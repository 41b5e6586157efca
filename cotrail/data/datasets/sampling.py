"""Seeded sampling of questions: the paper draws 100 for development and 500 others for testing (IRCoT, 4.1)."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from cotrail.core.questions import Question
from cotrail.errors import DatasetError

T = TypeVar("T")


def sample_questions(
    questions: Sequence[Question], development: int = 100, test: int = 500, seed: int = 0
) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
    """Draw disjoint development and test questions; DatasetError where there are too few.

    The draw depends on the seed and the questions' ids alone, so a reordered file gives the same questions in the same
    order, that of the draw. (The authors' draw depends on their files' order and can't be reproduced.)
    """
    return drawn(questions, lambda question: question.id, development, test, seed)


def shuffled(items: Iterable[T], key: Callable[[T], str], seed: int) -> list[T]:
    """Shuffle the items into an order that depends on their keys and the seed alone; the sort is stable.

    Sorting by hash instead of `random.shuffle` makes the relative order of two items independent of all others.
    """
    return sorted(items, key=lambda item: hashlib.sha256(f"{seed}\0{key(item)}".encode()).digest())


def drawn(
    items: Sequence[T], key: Callable[[T], str], development: int, test: int, seed: int
) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Draw disjoint development and test items by their keys; DatasetError where there are too few."""
    if development + test > len(items):
        raise DatasetError(
            f"{development} development and {test} test questions are {development + test}, but there are only "
            f"{len(items)}; draw fewer"
        )
    order = shuffled(items, key, seed)
    return tuple(order[:development]), tuple(order[development : development + test])
