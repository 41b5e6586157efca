"""Cost of a run: the work that it asked for, and what of it was computed for this run."""

from collections.abc import Iterable

from sqlalchemy import Connection

from cotrail.core.actions.registry import finds_paragraphs, has_prompt
from cotrail.core.ended_by import LIMIT
from cotrail.evaluation.experiments.costs import Cost, Work, cost
from cotrail.evaluation.experiments.costs import outcomes as outcomes
from cotrail.models.queries.progress import read_ends
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.spending import KindWork, read_lost, read_work
from cotrail.models.queries.usage import read_spent


def run_cost(connection: Connection, run_id: str) -> Cost:
    """The cost of a run so far."""
    kinds, losses = read_work(connection, run_id), read_lost(connection, run_id)
    return cost(
        made=_work(each for each in kinds if not each.adopted),
        adopted=_work(each for each in kinds if each.adopted),
        lost={each.outcome: each.executions for each in losses},
        lost_seconds=sum(each.seconds for each in losses),
        spent=read_spent(connection, run_id),
        limited=sum(number for end, number in read_ends(connection, run_id).items() if end.startswith(LIMIT)),
    )


def adopted_from(record: RunRecord) -> str | None:
    """Where a run's adopted steps were computed: the run that it was forked from, or others of its experiment."""
    if record.origin:
        return f"run {record.origin}"
    return f"experiment {record.experiment_id}" if record.experiment_id else None


def _work(kinds: Iterable[KindWork]) -> Work:
    return sum(map(_of_kind, kinds), Work())


def _of_kind(each: KindWork) -> Work:
    seconds = each.milliseconds / 1000
    return Work(
        steps=each.steps,
        model_calls=each.steps if has_prompt(each.kind) else 0,
        searches=each.steps if finds_paragraphs(each.kind) else 0,
        prompt_tokens=each.prompt_tokens,
        cached_prompt_tokens=each.cached_prompt_tokens,
        generated_tokens=each.generated_tokens,
        model_seconds=seconds if has_prompt(each.kind) else 0.0,
        seconds=seconds,
    )
