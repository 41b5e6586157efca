"""What a run came to: the scores of its questions, and what it cost."""

import gc
import signal
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection

from cotrail.common.humanize import count
from cotrail.common.processes import usable_cores
from cotrail.core.actions.registry import finds_paragraphs, has_prompt
from cotrail.core.history import LIMIT
from cotrail.core.money import Spent
from cotrail.errors import InputError, UnavailableError, UnknownNameError
from cotrail.evaluation.experiments.costs import Cost, QuestionCost, Work, cost
from cotrail.evaluation.experiments.costs import outcomes as outcomes
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.evaluation.metrics.question_scores import KindedScores, Scorable, Score, ScoredRun, scorer
from cotrail.models.queries import spending
from cotrail.models.queries.outcomes import Outcome, outcomes_of
from cotrail.models.queries.progress import read_ends
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion
from cotrail.models.records.questions import read_question_ids
from cotrail.models.schema.database import connect
from cotrail.models.schema.states import QuestionStatus
from cotrail.systems.registry import recorded_system

MOST_PROCESSES = 4
PART_QUESTIONS = 10_000
"""A process has at least so many questions to score: its start takes as long as some thousands."""


class Scored(KindedScores, frozen=True, kw_only=True):
    """The scores of a question of a run, and how far it is; see `cotrail.models.queries.outcomes.Outcome`."""

    key: str
    status: str
    ended_by: str


def scored_questions(connection: Connection, record: RunRecord) -> list[Scored]:
    """Score all questions of a run by the metrics of its dataset, in their order."""
    ids = read_question_ids(connection, record.id)
    processes = min(usable_cores(), MOST_PROCESSES, len(ids) // PART_QUESTIONS)
    return _together(connection, record, ids, processes) if processes > 1 else _part(connection, record, ids)


def scores_by_question(connection: Connection, record: RunRecord) -> dict[str, KindedScores]:
    """The scores of each question of a run as it stands, by its id, in the questions' order.

    Those that were cancelled, or left over by a rule or a budget, are left out.
    """
    return by_question(scored_questions(connection, record))


def by_question(scored: Iterable[Scored]) -> dict[str, KindedScores]:
    """The same of questions that are scored already."""
    asked = (each for each in scored if each.status != QuestionStatus.CANCELLED)
    return {each.key: KindedScores(kinds=each.kinds, scores=each.scores) for each in asked}


def scores_of(record: RunRecord, question: Scorable) -> QuestionScores:
    """The scores of a run's question by the metrics of its dataset."""
    return scorer(record, recorded_system)(question)


def shown_scores(record: ScoredRun, question: Scorable) -> QuestionScores:
    """The same for a reader of the question: without any where its dataset is unknown here."""
    return (scorer_of(record) or without_scores)(question)


def scorer_of(record: ScoredRun) -> Score | None:
    """What scores the run's questions; None where this process lacks its dataset."""
    try:
        return scorer(record, recorded_system)
    except (UnknownNameError, InputError):
        return None


def without_scores(_: object) -> QuestionScores:
    """Scores nothing."""
    return dict.fromkeys(METRICS)


def kinded_scores(record: RunRecord, question: Outcome | TracedQuestion) -> KindedScores:
    """The same with the kinds of the question."""
    return KindedScores(kinds=question.kinds, scores=scores_of(record, question))


def _part(connection: Connection, record: RunRecord, ids: Sequence[int]) -> list[Scored]:
    scores = scorer(record, recorded_system)
    return [
        Scored(kinds=each.kinds, scores=scores(each), key=each.key, status=each.status, ended_by=each.ended_by)
        for each in outcomes_of(connection, ids)
    ]


def _together(connection: Connection, record: RunRecord, ids: Sequence[int], processes: int) -> list[Scored]:
    """Score the first part here and each other one in a process of its own, which sees the same snapshot."""
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
    from multiprocessing import get_context

    size = -(-len(ids) // processes)
    own, *others = (ids[start : start + size] for start in range(0, len(ids), size))
    url = connection.engine.url.render_as_string(hide_password=False)
    snapshot = connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one()
    # Forked, a process would share this one's connections and threads.
    with ProcessPoolExecutor(len(others), get_context("spawn"), _begin) as pool:
        parts = [pool.submit(_elsewhere, url, snapshot, record, part) for part in others]
        scored = _part(connection, record, own)
        try:
            return scored + [each for part in parts for each in part.result()]
        except BrokenProcessPool as error:
            raise UnavailableError(
                "a process that scored a part of the run was killed, perhaps for want of memory; try again"
            ) from error


def _begin() -> None:
    """Prepare a process of its own: on Ctrl-C the first one says what there is to say, and scores have no cycles."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()


def _elsewhere(url: str, snapshot: str, record: RunRecord, ids: Sequence[int]) -> list[Scored]:
    """Score a part of a run's questions by a connection of its own to a snapshot."""
    with connect(url).connect() as connection:
        connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")  # it can't hold up a worker
        return _part(connection, record, ids)


def run_cost(connection: Connection, run_id: str) -> Cost:
    """The cost of a run so far."""
    kinds, losses = spending.read_work(connection, run_id), spending.read_lost(connection, run_id)
    lost_requests, lost_tokens = spending.read_lost_requests(connection, run_id)
    return cost(
        made=_work(each for each in kinds if not each.adopted),
        adopted=_work(each for each in kinds if each.adopted),
        lost={each.outcome: each.executions for each in losses},
        lost_seconds=sum(each.seconds for each in losses),
        spent=spending.read_spent(connection, run_id),
        limited=sum(number for end, number in read_ends(connection, run_id).items() if end.startswith(LIMIT)),
        lost_requests=lost_requests,
        lost_tokens=lost_tokens,
    )


def question_costs(connection: Connection, run_id: str) -> dict[str, QuestionCost]:
    """The cost of each question of a run that has ended steps, by its id."""
    keys: dict[int, str] = {}
    work: dict[int, list[spending.KindWork]] = {}
    for id_, key, each in spending.read_work_by_question(connection, run_id):
        keys[id_] = key
        work.setdefault(id_, []).append(each)
    priced = spending.has_prices(connection, run_id)
    spent = spending.read_spent_by_question(connection, run_id, [*keys]) if priced else {}
    return {
        keys[id_]: QuestionCost(work=_work(of), dollars=_dollars(spent.get(id_), of) if priced else None)
        for id_, of in work.items()
    }


def _dollars(spent: Spent | None, work: Iterable[spending.KindWork]) -> float | None:
    """What a question of a run with prices cost; None where a price isn't known or another run paid for steps of it."""
    if spent is None:
        return 0.0
    unknown = spent.dollars is None or spent.unpriced or any(each.adopted for each in work)
    return None if unknown else float(spent.dollars or 0)


def lost_requests_line(cost: Cost) -> str:
    """What providers lost of a run and may have charged, in words; empty where that is nothing."""
    if not cost.lost_requests:
        return ""
    lost = count(cost.lost_requests, "request")
    return (
        f"Lost by providers, who may have charged for them: {lost} in batches, about {cost.lost_tokens:,} tokens read."
    )


def adopted_from(record: RunRecord) -> str | None:
    """Where a run's adopted steps were computed: the run that it was forked from, or others of its experiment."""
    if record.origin:
        return f"run {record.origin}"
    return f"experiment {record.experiment_id}" if record.experiment_id else None


def _work(kinds: Iterable[spending.KindWork]) -> Work:
    return sum(map(_of_kind, kinds), Work())


def _of_kind(each: spending.KindWork) -> Work:
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
