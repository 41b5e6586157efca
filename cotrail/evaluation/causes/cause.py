"""Causes of wrong answers: their order, how many there are, and their agreement with people's labels."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from cotrail.evaluation.judging.tallies import cohens_kappa
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval


class Cause(StrEnum):
    """Why an answer is wrong; of several that apply to a question, the first in this order is its cause.

    What was reached excuses what was missed on the way: an answer that is right but for its form, and a chain that
    states the right answer, come first. Then comes what cut the way off, a limit; then the first break on the way from
    the search over the prompt to the chain.
    """

    NO_ANSWER = "no answer"
    """The question failed or is blocked."""
    FORM = "answer form only"
    """The answer is a published one in another form."""
    READER = "reader wrong"
    """The chain states a published answer, and the answer given is another."""
    LIMIT = "limit"
    """A limit ended the question before its chain stated an answer."""
    NEVER_FOUND = "gold never found"
    """A gold paragraph was in no search result and in no prompt."""
    NOT_SHOWN = "found but not shown"
    """A gold paragraph was found, and what the model was shown lacks it, or lacks its part with the answer."""
    CONTRADICTED = "contradicted"
    """The chain says something that a gold paragraph contradicts which was shown."""
    NOT_USED = "shown but not used"
    """A gold paragraph was shown, and nothing in the chain or the answer is from it."""
    UNEXPLAINED = "unexplained"
    """None of these applies."""

    @property
    def slug(self) -> str:
        """The cause as a name in pages."""
        return self.value.replace(" ", "-")


class Sign(Struct, frozen=True, kw_only=True):
    """A cause that applies to a question, and the facts behind it in a sentence."""

    cause: Cause
    facts: str


class Explanation(Struct, frozen=True, kw_only=True):
    """Why an answer is wrong; signs: all that apply, in the order of precedence, one at least."""

    signs: tuple[Sign, ...]

    @property
    def cause(self) -> Cause:
        """The cause: that of the first sign."""
        return self.signs[0].cause

    @property
    def facts(self) -> str:
        """The facts behind the cause."""
        return self.signs[0].facts


class CauseLabel(Struct, frozen=True, kw_only=True):
    """An annotator's label of a wrong answer; labelled_at: when it was stored, None before."""

    question_id: str
    annotator: str
    cause: Cause
    note: str = ""
    labelled_at: datetime | None = None


class CauseCount(Struct, frozen=True, kw_only=True):
    """Wrong answers of a cause.

    share: of all wrong answers, with its interval. signs: to how many of them it applies, its own and others'.
    """

    cause: Cause
    questions: int
    share: float
    interval: ConfidenceInterval | None
    signs: int


def cause_counts(explained: Sequence[Explanation]) -> tuple[CauseCount, ...]:
    """Every cause in the order of precedence, those of no question too; none where no answer is wrong."""
    causes = [each.cause for each in explained]
    signs = Counter(sign.cause for each in explained for sign in each.signs)
    return tuple(_count(cause, causes, signs[cause]) for cause in Cause) if causes else ()


def _count(cause: Cause, causes: Sequence[Cause], signs: int) -> CauseCount:
    scores = [float(each == cause) for each in causes]
    number = causes.count(cause)
    return CauseCount(
        cause=cause, questions=number, share=number / len(causes), interval=confidence_interval(scores), signs=signs
    )


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
