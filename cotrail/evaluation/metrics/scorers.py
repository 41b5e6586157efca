"""Scoring of recorded questions by the metrics of their run's dataset."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from cotrail.core.paragraphs import Paragraph
from cotrail.core.questions import GoldParagraph
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics.metric import Metric, ScoredQuestion
from cotrail.evaluation.metrics.registry import METRICS
from cotrail.evaluation.metrics.scores import QuestionScores


class Scorable(Protocol):
    """What scores take of a recorded question; see `ScoredQuestion`. paragraphs: the collected ones."""

    @property
    def answer(self) -> str | None: ...  # noqa: D102
    @property
    def answers(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def gold(self) -> tuple[GoldParagraph, ...]: ...  # noqa: D102
    @property
    def pinned(self) -> GoldParagraph | None: ...  # noqa: D102
    @property
    def stated(self) -> str: ...  # noqa: D102
    @property
    def paragraphs(self) -> tuple[Paragraph, ...]: ...  # noqa: D102


class ScoredRun(Protocol):
    """What scores take of a recorded run."""

    @property
    def system(self) -> str: ...  # noqa: D102
    @property
    def system_version(self) -> int: ...  # noqa: D102
    @property
    def settings(self) -> dict[str, Any]: ...  # noqa: D102
    @property
    def dataset(self) -> str: ...  # noqa: D102


class Answering(Protocol):
    """A system, as far as scores need it."""

    @property
    def judges(self) -> bool: ...  # noqa: D102
    def answers_with(self, settings: Mapping[str, Any]) -> bool: ...  # noqa: D102


FindRecorded = Callable[[str, int], Answering | None]
Score = Callable[[Scorable], QuestionScores]


def scorer(run: ScoredRun, find_recorded: FindRecorded, metrics: Iterable[str] = METRICS) -> Score:
    """What scores the questions of a run by these metrics.

    find_recorded: `cotrail.systems.registry.recorded_system`.
    """
    system, scoring = find_recorded(run.system, run.system_version), scoring_of(run.dataset)
    answering = system is None or system.answers_with(run.settings)
    named = {name: _shared(METRICS[name]) for name in metrics}
    if system is not None and system.judges:  # a verdict isn't an answer
        return lambda _: dict.fromkeys(named)

    def scored(question: Scorable) -> QuestionScores:
        asked = ScoredQuestion(
            scoring=scoring,
            answer=question.answer,
            answers=question.answers,
            collected=question.paragraphs,
            gold=question.gold,
            pinned=question.pinned,
            stated=question.stated,
            answering=answering,
        )
        return {name: value(asked) for name, value in named.items()}

    return scored


def _shared(metric: Metric) -> Callable[[ScoredQuestion], float | None]:
    """The metric's value, equal ones as one object: means look at those of many questions again and again."""
    values: dict[float | None, float | None] = {}

    def value(question: ScoredQuestion) -> float | None:
        found = metric.value(question)
        return values.setdefault(found, found)

    return value
