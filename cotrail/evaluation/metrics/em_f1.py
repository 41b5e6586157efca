"""Exact match and F1 of an answer, with the precision and the recall that F1 is made of."""

from msgspec import Struct


class AnswerScores(Struct, frozen=True, kw_only=True, order=True):
    """Agreement of an answer with a published one, each score from 0 to 1; ordered by EM first, then F1, and so on."""

    em: float
    f1: float
    precision: float
    recall: float


NO_OVERLAP = AnswerScores(em=0.0, f1=0.0, precision=0.0, recall=0.0)
FULL_OVERLAP = AnswerScores(em=1.0, f1=1.0, precision=1.0, recall=1.0)
