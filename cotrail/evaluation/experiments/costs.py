"""What runs took, as tables have it: calls of the model, tokens, time and steps."""

from collections.abc import Sequence

from cotrail.evaluation.experiments.ircot.cells import Cost
from cotrail.evaluation.experiments.ircot.measures import Runs, runs_by_line
from cotrail.evaluation.experiments.report_tables import (
    GOAL,
    MODEL,
    PLACE,
    READER,
    SYSTEM,
    Column,
    Row,
    Table,
    Value,
    listing,
    names_of,
)

SPENT = (
    Column("model_calls", "Model calls", "decimal"),
    Column("prompt_tokens", "Tokens read", "count"),
    Column("cached_prompt_tokens", "of them cached", "count"),
    Column("generated_tokens", "Tokens written", "count"),
    Column("seconds", "Time", "seconds"),
)
STEPS = (Column("steps", "Steps", "count"), Column("adopted", "of them adopted", "count"))

PER_QUESTION = "Calls, tokens and time are those of an answered question on average; steps are those of all questions."


def costs(results: Runs) -> Table | None:
    """What an answered question took on average, by line."""
    rows = [
        Row(values=names_of(line) | spent([run.cost for run in runs], sum(run.finished for run in runs)))
        for line, runs in runs_by_line(results).items()
    ]
    columns = (GOAL, PLACE, MODEL, SYSTEM, READER, *SPENT, *STEPS)
    return listing("costs", "What a question costs", columns, rows, notes=(PER_QUESTION,))


def totals(results: Runs) -> Table | None:
    """What all runs took."""
    stages = {
        "search": [run.cost for run in results if run.cell.stage == "search"],
        "test": [run.cost for run in results if run.cell.stage == "test"],
    }
    rows = [
        Row(values={"stage": stage, "runs": len(taken), **spent(taken, 1)}) for stage, taken in stages.items() if taken
    ]
    columns = (Column("stage", "Runs to"), Column("runs", "Runs", "count"), *SPENT, *STEPS)
    note = "An adopted step counts in every run that has it, with what it took when it was computed."
    return listing("totals", "What the experiment took", columns, rows, notes=(note,))


def spent(costs: Sequence[Cost], shared_by: int) -> dict[str, Value]:
    """What several runs took, by so many; nothing where these are none."""
    sums = {each.name: sum(getattr(cost, each.name) for cost in costs) for each in (*SPENT, *STEPS)}
    shares = {each.name: sums[each.name] / shared_by if shared_by else None for each in SPENT}
    return {**sums, **shares}
