"""Calibration of a judge: its verdicts beside people's labels.

Precision and recall are of the verdict that the rubric scores 1, in short "right": what share of the answers that the
judge calls right are, and what share of the right ones it calls so.
"""

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from cotrail.evaluation.judging.agreement import Kappa, Verdicts, cohens_kappa
from cotrail.evaluation.judging.calibration_error import CalibrationError, calibration_error
from cotrail.evaluation.judging.labels import Label
from cotrail.evaluation.judging.shares import Share, share

RIGHT, OTHER = "right", "not right"
"""What verdicts are called beside labels that only say whether an answer is correct."""


class Confused(Struct, frozen=True, kw_only=True):
    """How many questions have this label and this verdict."""

    label: str
    verdict: str
    questions: int


class Calibration(Struct, frozen=True, kw_only=True):
    """A judge beside people.

    labelled: questions with a label; compared: those that the judge has a verdict on, too; unlabelled: those with a
        verdict alone.
    agreement: of verdict and label, as the labels are; accuracy, precision, recall, f1: of "right".
    kappa: of verdict and label. confidence: the error of the confidence that the judge states in its verdicts; None
        where it states none, stated: on how many of the questions compared it does.
    """

    labelled: int
    compared: int
    unlabelled: int
    agreement: Share
    accuracy: Share
    precision: Share
    recall: Share
    f1: float | None
    kappa: Kappa
    confusion: tuple[Confused, ...]
    stated: int
    confidence: CalibrationError | None


def calibration(
    verdicts: Verdicts, labels: Mapping[str, Label], scores: Mapping[str, float], confidences: Mapping[str, float]
) -> Calibration:
    """Compare verdicts with labels.

    scores: of the rubric's verdicts, 1 that of the right one; confidences: those stated, by question.
    """
    compared = [question for question in verdicts if question in labels]
    pairs = {question: _pair(labels[question], verdicts[question], scores) for question in compared}
    calls = [(_is_right(labels[question], scores), _is_right(verdicts[question], scores)) for question in compared]
    stated = [
        (confidences[question], label == verdict)
        for question, (label, verdict) in pairs.items()
        if question in confidences
    ]
    hits, said, true = calls.count((True, True)), sum(call for _, call in calls), sum(right for right, _ in calls)
    return Calibration(
        labelled=len(labels),
        compared=len(compared),
        unlabelled=len(verdicts) - len(compared),
        agreement=share(label == verdict for label, verdict in pairs.values()),
        accuracy=share(right == call for right, call in calls),
        precision=share(right for right, call in calls if call),
        recall=share(call for right, call in calls if right),
        f1=2 * hits / (said + true) if said + true else None,
        kappa=cohens_kappa([*pairs.values()]),
        confusion=tuple(
            Confused(label=label, verdict=verdict, questions=questions)
            for (label, verdict), questions in sorted(Counter(pairs.values()).items())
        ),
        stated=len(stated),
        confidence=calibration_error(stated),
    )


def _pair(label: Label, verdict: str, scores: Mapping[str, float]) -> tuple[str, str]:
    """Label and verdict in the same words: the rubric's, or only whether the answer is right."""
    if isinstance(label, str):
        return label, verdict
    return (RIGHT if label else OTHER), (RIGHT if _is_right(verdict, scores) else OTHER)


def _is_right(label: Label, scores: Mapping[str, float]) -> bool:
    return scores[label] == 1 if isinstance(label, str) else label
