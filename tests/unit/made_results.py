"""Results of invented runs, for the tests of tables and figures."""

from collections.abc import Mapping, Sequence

from cotrail.evaluation.comparison.differences import Reach
from cotrail.evaluation.experiments.costs import Cost, Work
from cotrail.evaluation.experiments.costs import cost as cost_of
from cotrail.evaluation.experiments.ircot.cells import Cell, CellResult, Goal, Line, Stage
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.systems.parts.reading import Reader

MADE = Work(
    steps=7,
    model_calls=5,
    searches=2,
    prompt_tokens=2500,
    cached_prompt_tokens=500,
    generated_tokens=150,
    model_seconds=4.0,
    seconds=5.0,
)
ADOPTED = Work(
    steps=5,
    model_calls=3,
    searches=2,
    prompt_tokens=1500,
    cached_prompt_tokens=500,
    generated_tokens=50,
    model_seconds=0.5,
    seconds=1.0,
)
COST = cost_of(made=MADE, adopted=ADOPTED, lost={}, lost_seconds=0.0)


def line(
    system: str = "ircot",
    *,
    goal: Goal = "qa",
    dataset: str = "hotpotqa",
    demonstrations: str = "",
    model: str = "tiny-1b",
    reader: Reader = "direct",
) -> Line:
    """A line; retrieval has no reader."""
    return Line(
        goal=goal,
        dataset=dataset,
        demonstrations=demonstrations or dataset,
        model=model,
        system=system,
        reader="none" if goal == "retrieval" else reader,
    )


def made(
    of: Line,
    values: Sequence[float] | Mapping[str, float],
    *,
    stage: Stage = "test",
    demonstration_set: int = 1,
    chosen: tuple[int | None, int | None] = (4, 1),
    finished: int | None = None,
    kinds: Sequence[str] = (),
    cost: Cost = COST,
    factual_errors: Mapping[str, bool] | None = None,
    unasked: int = 0,
) -> CellResult:
    """A run with these values of its line's measure, by question; an F1 of 1 is an exact match.

    unasked: questions behind these that it was never asked.
    """
    scored = values if isinstance(values, Mapping) else {f"q{i}": value for i, value in enumerate(values)}
    return CellResult(
        cell=Cell(
            line=of, stage=stage, demonstration_set=demonstration_set, retrieval_count=chosen[0], distractors=chosen[1]
        ),
        run=f"run-{stage}-{demonstration_set}",
        scores={question: _scores(of.goal, value) for question, value in scored.items()},
        kinds={key: {"type": kind} for key, kind in zip(scored, kinds or ["bridge"] * len(scored), strict=True)},
        finished=len(scored) if finished is None else finished,
        cost=cost,
        reach=Reach(ended=dict.fromkeys(scored, True) | {f"q{len(scored) + i}": False for i in range(unasked)}),
        unasked=unasked,
        factual_errors=factual_errors or {},
    )


def _scores(goal: Goal, value: float) -> QuestionScores:
    none: dict[str, float | None] = dict.fromkeys(METRICS)
    if goal == "retrieval":
        return none | {"paragraph_recall": value, "title_recall": value, "paragraphs_collected": 6}
    own = {"answer_f1": value, "tuning_f1": value, "answer_em": float(value == 1), "paragraphs_collected": 6}
    return none | own
