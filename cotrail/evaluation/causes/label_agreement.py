"""Agreement of the causes by rule with a person's labels."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from cotrail.evaluation.causes.cause import Cause
from cotrail.evaluation.causes.cause_label import CauseLabel
from cotrail.evaluation.judging.agreement import cohens_kappa
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval


class LabelAgreement(Struct, frozen=True, kw_only=True):
    """How far the causes by rule are an annotator's.

    labels: the answers that the annotator has labelled; agreed: those with the same cause by rule, with their share.
    kappa: Cohen's kappa (1960), agreement beyond chance; None where both have the same cause everywhere.
    confusion: how often the rules name a cause and the annotator one, by both.
    """

    annotator: str
    labels: int
    agreed: int
    share: float
    interval: ConfidenceInterval | None
    kappa: float | None
    confusion: dict[Cause, dict[Cause, int]]


def label_agreements(causes: Mapping[str, Cause], labels: Sequence[CauseLabel]) -> Iterator[LabelAgreement]:
    """The agreement with each annotator, by name; causes: by rule, by question id.

    Labels of answers that aren't wrong any more, such as after `cotrail retry`, don't count.
    """
    for annotator in sorted({each.annotator for each in labels}):
        theirs = [each for each in labels if each.annotator == annotator and each.question_id in causes]
        if theirs:
            yield _agreement(annotator, [(causes[each.question_id], each.cause) for each in theirs])


def _agreement(annotator: str, pairs: Sequence[tuple[Cause, Cause]]) -> LabelAgreement:
    same = [float(rule == label) for rule, label in pairs]
    counts = Counter(pairs)
    return LabelAgreement(
        annotator=annotator,
        labels=len(pairs),
        agreed=int(sum(same)),
        share=sum(same) / len(pairs),
        interval=confidence_interval(same),
        kappa=cohens_kappa(pairs).value,
        confusion={
            rule: {label: counts[rule, label] for label in Cause if counts[rule, label]}
            for rule in Cause
            if any(rule == each for each, _ in pairs)
        },
    )
