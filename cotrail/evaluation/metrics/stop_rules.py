"""Rules by which a run stops asking questions: once the interval of a metric's mean is narrow enough.

The interval is the confidence sequence of the questions in their order, which is random, so that stopping by it keeps
its promise (`cotrail.evaluation.metrics.confidence_intervals`). After how many questions a rule stops follows from
their scores alone: anyone who looks, however often, finds the same number.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from msgspec import Struct

from cotrail.common.nearest import guess
from cotrail.common.printable_text import cut
from cotrail.errors import InputError
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_sequence, narrower_after
from cotrail.evaluation.metrics.metric import Metric, MetricFacts
from cotrail.evaluation.metrics.question_scores import IntervalOf, usual_interval

SHORT_NAMES = {
    "em": "answer_em",
    "accuracy": "answer_em",
    "f1": "answer_f1",
    "recall": "paragraph_recall",
    "precision": "paragraph_precision",
    "ndcg": "ndcg_at_10",
    "rouge": "rouge_l",
}
"""Usual names of metrics, which rules may have instead."""

UNTIL = "until"
"""The key of a run's provenance under which its rule stands."""

_FORM = re.compile(r"width ?\( ?([^ ()<]+) ?\) ?< ?([^ ()<]+)")
_LONGEST = 100


class StopRule(Struct, frozen=True):
    """Stop once the interval of the mean of this metric is narrower than `width`, in the metric's own unit."""

    metric: str
    width: float

    def __str__(self) -> str:
        return f"width({self.metric}) < {self.width}"

    def stops_after(self, scores: Sequence[float | None]) -> int | None:
        """The number of questions with these scores of the metric after which it stops; None if it continues.

        scores: None of a question that doesn't have the metric; in the order of the questions.
        """
        metric = METRICS[self.metric]
        places = [place for place, score in enumerate(scores, start=1) if score is not None]
        known = [score for score in scores if score is not None]
        count = narrower_after(known, self.width, metric.highest, metric.lowest)
        return None if count is None else places[count - 1]


def parse_rule(text: str) -> StopRule:
    """Read a rule such as `width(f1) < 0.05`; raises InputError."""
    found = _FORM.fullmatch(" ".join(text.split())) if len(text) <= _LONGEST else None
    if found is None:
        raise InputError(f"{cut(text, _LONGEST)!r} is no rule: write width(METRIC) < NUMBER, such as width(f1) < 0.05")
    metric = _metric(found[1])
    return StopRule(metric.name, _width(found[2], metric))


def rule_of(provenance: Mapping[str, Any]) -> StopRule | None:
    """The rule by which a run stops asking questions; None where it asks all."""
    return parse_rule(provenance[UNTIL]) if UNTIL in provenance else None


def until(provenance: Mapping[str, Any]) -> str:
    """The rule by which a run stops asking questions, as it was written; empty where it asks all."""
    return str(provenance.get(UNTIL, ""))


def interval_of(*, is_fixed: bool) -> IntervalOf:
    """What computes a mean's interval: the usual one where the number of questions was fixed beforehand."""
    return usual_interval if is_fixed else sequence_interval


def sequence_interval(metric: MetricFacts, scores: Sequence[float]) -> ConfidenceInterval | None:
    """The interval of a metric's mean that holds at every stop; None for a number without a bound."""
    return None if metric.is_count else confidence_sequence(scores, metric.highest, metric.lowest)


def _metric(name: str) -> Metric:
    metric = METRICS.get(SHORT_NAMES.get(name.lower(), name))
    bounded = [each.name for each in METRICS.values() if not each.is_count]
    if metric is None:
        raise InputError(
            f"there is no metric {name!r}{guess(name, (*bounded, *SHORT_NAMES))}; there are: {_listed(bounded)}"
        )
    if metric.is_count:
        raise InputError(
            f"{metric.name} is a number without a bound, so no interval holds at every stop: name one of "
            f"{_listed(bounded)}"
        )
    return metric


def _width(text: str, metric: Metric) -> float:
    try:
        width = float(text)
    except ValueError:
        raise InputError(f"{text!r} is no number: write a width, such as 0.05") from None
    if not isfinite(width) or not 0 < width < metric.span:
        raise InputError(
            f"a width of {text} can't be a rule: {metric.name} needs one above 0 and below {metric.span:g}"
        )
    return width


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
