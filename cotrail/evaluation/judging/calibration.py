"""Calibration of a judge: people's labels, and its verdicts compared with them.

Precision and recall are of the verdict that the rubric scores 1, in short "right": what share of the answers that the
judge calls right are, and what share of the right ones it calls so.

Labels of some answers also correct the share of right ones among all that the judge graded, by prediction-powered
inference (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023, https://arxiv.org/abs/2301.09633).
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import fsum, sqrt
from pathlib import Path
from statistics import NormalDist, fmean, pvariance

from msgspec import UNSET, Struct, UnsetType

from cotrail.common import text_files
from cotrail.common.json_files import decode, is_object, lines
from cotrail.common.nearest import refused_choice
from cotrail.errors import InputError
from cotrail.evaluation.judging.tallies import Kappa, Share, Verdicts, cohens_kappa, share
from cotrail.evaluation.metrics.confidence_intervals import LEVEL

# Files of people's labels, by which a judge is calibrated: JSON Lines, or a table separated by tabs or commas.

BOOLEANS = {"true": True, "false": False}

Label = str | bool
"""A verdict, or whether the answer is correct."""


class _Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    verdict: str | UnsetType = UNSET
    correct: bool | UnsetType = UNSET


def read_labels(path: Path, questions: Collection[str], verdicts: Collection[str]) -> dict[str, Label]:
    """The labels by the ids of their questions.

    questions: the ids that the run has; verdicts: the rubric's. InputError names the place of a line that has another
    form, a question twice, one that the run doesn't have, or a verdict that the rubric doesn't.
    """
    labels: dict[str, Label] = {}
    places: dict[str, str] = {}
    for place, line in _lines(path):
        label = _label(place, line, verdicts)
        if line.id not in questions:
            raise InputError(
                f"{place}: the run has no question {line.id!r}; take the line out, or name the labels' run"
            )
        if before := places.get(line.id):
            raise InputError(f"{place}: question {line.id!r} is in {before} already; remove one of them")
        labels[line.id], places[line.id] = label, place
    if not labels:
        raise InputError(f'{path} has no labels; write one a line, such as {{"id": "q1", "correct": true}}')
    if len({type(label) for label in labels.values()}) > 1:
        raise InputError(f"{path} has both `verdict` and `correct`; give all labels as one of them")
    return labels


def _lines(path: Path) -> Iterator[tuple[str, _Line]]:
    if is_object(path, InputError):
        for place, raw in lines(path, InputError):
            yield place, decode(raw, _Line, place, InputError)
    else:
        for place, _, cells in text_files.rows(path, (("id",), ("verdict", "correct")), InputError):
            yield place, _of_cells(place, cells)


def _of_cells(place: str, cells: Mapping[str, str]) -> _Line:
    """A line of a table; an empty cell says nothing."""
    verdict, correct = cells.get("verdict", "").strip(), cells.get("correct", "").strip()
    if correct and correct.lower() not in BOOLEANS:
        raise InputError(f"{place}: {refused_choice('`correct`', correct, BOOLEANS)}")
    return _Line(id=cells["id"], verdict=verdict or UNSET, correct=BOOLEANS[correct.lower()] if correct else UNSET)


def _label(place: str, line: _Line, verdicts: Collection[str]) -> Label:
    match line.verdict, line.correct:
        case str() as verdict, UnsetType():
            if verdict not in verdicts:
                raise InputError(f"{place}: {refused_choice('`verdict`', verdict, verdicts)}")
            return verdict
        case UnsetType(), bool() as correct:
            return correct
    raise InputError(f"{place}: a label is either a `verdict` or whether the answer is `correct`; give one of them")


# Calibration error of stated confidence: how far it is from the share of what turned out right.
#
# As Humanity's Last Exam states it (Phan et al. 2025, arXiv:2501.14249), and BrowseComp after it (Wei et al. 2025,
# arXiv:2504.12516): the root of the mean squared difference in bins of 100 (Hendrycks et al. 2019, arXiv:1812.04606).
# The published script leaves the last bin out of its sum; here it counts.

BIN = 100
"""The number of statements in a bin, those that are left over being in the last one; fewer are one bin."""


class Bin(Struct, frozen=True, kw_only=True):
    """Statements of similar confidence: how many, their mean confidence, and the share that was right."""

    statements: int
    confidence: float
    right: float


class CalibrationError(Struct, frozen=True, kw_only=True):
    """The error, from 0 to 1, with the bins that it is made of, by increasing confidence."""

    error: float
    bins: tuple[Bin, ...]


def calibration_error(statements: Sequence[tuple[float, bool]], size: int = BIN) -> CalibrationError | None:
    """The error of statements, each with its confidence (0 to 1) and whether it was right; None where there are none.

    Statements of the same confidence are in the order in which they are given.
    """
    if not statements:
        return None
    ordered = sorted(statements, key=lambda statement: statement[0])
    starts = range(0, max(len(ordered) // size, 1) * size, size)
    ends = [*starts[1:], len(ordered)]
    bins = tuple(_bin(ordered[start:end]) for start, end in zip(starts, ends, strict=True))
    squares = fsum(each.statements * (each.confidence - each.right) ** 2 for each in bins)
    return CalibrationError(error=sqrt(squares / len(ordered)), bins=bins)


def _bin(statements: Sequence[tuple[float, bool]]) -> Bin:
    return Bin(
        statements=len(statements),
        confidence=fmean(confidence for confidence, _ in statements),
        right=fmean(right for _, right in statements),
    )


RIGHT, OTHER = "right", "not right"
"""What verdicts are called next to labels that only say whether an answer is correct."""


LEAST_CORRECTED = 2
"""Answers of which a variance is known."""


class Confused(Struct, frozen=True, kw_only=True):
    """How many questions have this label and this verdict."""

    label: str
    verdict: str
    questions: int


class CorrectedShare(Struct, frozen=True, kw_only=True):
    """The share of right answers, by verdicts that labels correct.

    judged: by the verdicts alone, over the `unlabelled` answers; correction: the mean of label less verdict, each 0 or
        1, over the `compared` ones; value: both together.
    low, high: of 95 %, for labels of answers that were drawn at random. All between 0 and 1 but the correction.
    """

    judged: float
    correction: float
    value: float
    low: float
    high: float
    compared: int
    unlabelled: int


class Calibration(Struct, frozen=True, kw_only=True):
    """A judge compared with people.

    labelled: questions with a label; compared: those that the judge has a verdict on, too; unlabelled: those with a
        verdict alone.
    agreement: of verdict and label, as the labels are; accuracy, precision, recall, f1: of "right".
    kappa: of verdict and label. confidence: the error of the confidence that the judge states in its verdicts; None
        where it states none, stated: on how many of the questions compared it does.
    corrected: the share of right answers; None where fewer than two answers are compared, or have a verdict alone.
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
    corrected: CorrectedShare | None


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
        corrected=corrected_share(
            calls, [_is_right(verdict, scores) for key, verdict in verdicts.items() if key not in labels]
        ),
    )


def corrected_share(compared: Sequence[tuple[bool, bool]], unlabelled: Sequence[bool]) -> CorrectedShare | None:
    """The share of right answers from verdicts without a label, and from labels with their verdicts: right or not.

    It is the mean of the verdicts without labels plus the mean error of those with one, and the variance of either
    counts by its own number of answers (section 3.1, algorithm 1). None where one of both has fewer than two.
    """
    errors, calls = [label - verdict for label, verdict in compared], [float(each) for each in unlabelled]
    if min(len(errors), len(calls)) < LEAST_CORRECTED:
        return None
    judged, correction = fmean(calls), fmean(errors)
    width = NormalDist().inv_cdf((1 + LEVEL) / 2) * sqrt(
        pvariance(calls) / len(calls) + pvariance(errors) / len(errors)
    )
    low, value, high = (min(max(judged + correction + side, 0.0), 1.0) for side in (-width, 0.0, width))
    return CorrectedShare(
        judged=judged,
        correction=correction,
        value=value,
        low=low,
        high=high,
        compared=len(errors),
        unlabelled=len(calls),
    )


def _pair(label: Label, verdict: str, scores: Mapping[str, float]) -> tuple[str, str]:
    """Label and verdict in the same words: the rubric's, or only whether the answer is right."""
    if isinstance(label, str):
        return label, verdict
    return (RIGHT if label else OTHER), (RIGHT if _is_right(verdict, scores) else OTHER)


def _is_right(label: Label, scores: Mapping[str, float]) -> bool:
    return scores[label] == 1 if isinstance(label, str) else label
