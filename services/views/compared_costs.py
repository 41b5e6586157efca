"""Costs of compared runs, and which of them no other beats at its cost."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from cotrail.evaluation.comparison.pareto import pareto_front

Measure = Literal["dollars", "tokens", "seconds"]
"""By what runs are compared for their cost."""


class RunCosts(Struct, frozen=True, kw_only=True):
    """What the steps of a run took, those that it adopted from another run too, and what each is per ended question.

    Numbers of a run are whole, and means aren't. calls: of models; tokens: those read and written; seconds: of all
    steps, one after the other.
    dollars: None where a model's price isn't known or none has one, or where steps were adopted, which cost nothing.
    """

    calls: int | float
    searches: int | float
    prompt_tokens: int | float
    generated_tokens: int | float
    seconds: float
    dollars: float | None

    @property
    def tokens(self) -> float:
        """All tokens."""
        return self.prompt_tokens + self.generated_tokens

    def per(self, questions: int) -> "RunCosts | None":
        """The mean per question; None for none."""
        if not questions:
            return None
        return RunCosts(
            calls=self.calls / questions,
            searches=self.searches / questions,
            prompt_tokens=self.prompt_tokens / questions,
            generated_tokens=self.generated_tokens / questions,
            seconds=self.seconds / questions,
            dollars=None if self.dollars is None else self.dollars / questions,
        )


class CostFront(Struct, frozen=True, kw_only=True):
    """Quality against cost; front: the runs than which none is better at their cost, the cheapest first.

    points: the cost of a question and the quality, by run.
    """

    measure: Measure
    points: Mapping[str, tuple[float, float]]
    front: tuple[str, ...]


def cost_front(costs: Mapping[str, RunCosts | None], qualities: Mapping[str, float | None]) -> CostFront | None:
    """The front of runs by the cost of a question and the quality; None without two runs that have both.

    The cost is money where all have prices, otherwise tokens where all have some, and otherwise seconds.
    """
    known = {run: (cost, qualities[run]) for run, cost in costs.items() if cost and qualities[run] is not None}
    if len(known) < 2:
        return None
    measure: Measure = "seconds"
    if all(cost.dollars is not None for cost, _ in known.values()):
        measure = "dollars"
    elif all(cost.tokens for cost, _ in known.values()):
        measure = "tokens"
    points = {run: (float(getattr(cost, measure)), float(quality or 0)) for run, (cost, quality) in known.items()}
    return CostFront(measure=measure, points=points, front=pareto_front(points))
