"""The scores of a run."""

from collections.abc import Mapping

from msgspec import Struct

from cotrail.core.money import Spent
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval as ConfidenceInterval
from cotrail.evaluation.metrics.question_scores import MeanScores
from cotrail.evaluation.metrics.repeated_scores import REPEATS_CAVEAT as REPEATS_CAVEAT
from cotrail.evaluation.metrics.repeated_scores import RepeatedScores as RepeatedScores


class Stopping(Struct, frozen=True, kw_only=True):
    """How a run with a rule (`cotrail.evaluation.metrics.stop_rules`) is scored: by its first questions alone.

    met: whether the rule stopped it; questions: how many were asked until then, or have ended so far without a gap.
    """

    rule: str
    met: bool
    questions: int


class RunScores(Struct, frozen=True, kw_only=True):
    """A run's scores; each metric is a mean, None where no question has it, and has a confidence interval.

    spent: on language models; None where none of them is hosted.
    ends: the number of questions by what ended them (`cotrail.core.ended_by`).
    kinds: the same for each kind of questions, by the name of that sort of kinds and the kind: `type`, `bridge`.
    repeats: its scores together with those of the runs that ask the same with other seeds, where there are any.
    until: of a run with a rule; then the means are over its first questions, and the intervals hold at every stop.
    """

    run: str
    system: str
    dataset: str
    questions: int
    finished: int
    failed: int
    metrics: dict[str, float | None]
    intervals: dict[str, ConfidenceInterval | None]
    kinds: dict[str, dict[str, MeanScores]]
    steps: int
    prompt_tokens: int
    cached_prompt_tokens: int
    generated_tokens: int
    ends: Mapping[str, int] = {}
    spent: Spent | None = None
    repeats: RepeatedScores | None = None
    until: Stopping | None = None
