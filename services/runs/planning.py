"""Plans of runs: made as a run is submitted, of all that decides it, and sealed with its configuration."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from cotrail.audit.asked_questions import AskedQuestions, asked_questions
from cotrail.audit.plan_check import PLAN, json_digest, whole_numbers
from cotrail.core.budgets import Budgets
from cotrail.core.questions import Question
from cotrail.core.repeats import read_repeat
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics.metric import ScoredQuestion
from cotrail.evaluation.metrics.stop_rules import UNTIL
from cotrail.evaluation.plans.plan import Plan
from cotrail.evaluation.plans.plan_file import PlanFile, PlannedMetrics, planned_metrics, read_plan_file
from cotrail.models.commands.new_runs import Submission
from cotrail.models.records.runs import BUDGETS
from cotrail.services.runs.requests import read_toml_file
from cotrail.systems.registry import recorded_system

NOTHING_STATED = PlanFile()


def read_stated(path: str | None) -> PlanFile:
    """What the plan file of a run states; nothing where it has none. Raises InputError."""
    return NOTHING_STATED if path is None else read_plan_file(read_toml_file(Path(path)), path)


def with_plan(submission: Submission, questions: Sequence[Question], stated: PlanFile = NOTHING_STATED) -> Submission:
    """The run with its plan among what it seals; InputError where its questions don't allow what is stated.

    It has to be otherwise complete: whatever decides the run is in its plan.
    """
    [planned] = with_plans([submission], questions, stated)
    return planned


def with_plans(
    repeats: Sequence[Submission], questions: Sequence[Question], stated: PlanFile = NOTHING_STATED
) -> list[Submission]:
    """The same of the repeats of a run, which ask the same questions."""
    metrics, asked = planned_metrics(stated, _unanswered(repeats[0], questions)), asked_questions(questions)
    return [_sealing(each, _plan(each, asked, metrics, stated.hypothesis)) for each in repeats]


def _sealing(submission: Submission, plan: Plan) -> Submission:
    return replace(submission, provenance={**submission.provenance, PLAN: whole_numbers(msgspec.to_builtins(plan))})


def _plan(submission: Submission, asked: AskedQuestions, planned: PlannedMetrics, hypothesis: str) -> Plan:
    request = submission.provenance.get("request", {})
    return Plan(
        system=submission.system,
        system_version=submission.system_version,
        settings=json_digest(submission.settings),
        demonstrations={form: shots.digest for form, shots in submission.shots.items()},
        binding=submission.binding,
        dataset=submission.dataset,
        questions=asked,
        limit=request.get("limit"),
        budgets=msgspec.convert(submission.provenance.get(BUDGETS, {}), Budgets),
        repeat=read_repeat(submission.provenance),
        until=submission.provenance.get(UNTIL),
        metrics=planned.metrics,
        primary=planned.primary,
        comparison=planned.comparison,
        hypothesis=hypothesis,
        experiment=submission.experiment,
        cell=submission.cell,
        origin=submission.origin,
        forked_at=submission.forked_at,
    )


def _unanswered(submission: Submission, questions: Sequence[Question]) -> list[ScoredQuestion]:
    """The questions as metrics see them before any is answered; none of a judge's run, which none scores."""
    system = recorded_system(submission.system, submission.system_version)
    if system is not None and system.judges:
        return []
    answering = system is None or system.answers_with(submission.settings)
    scoring = scoring_of(submission.dataset)
    return [
        ScoredQuestion(
            scoring=scoring,
            answer=None,
            answers=each.answers,
            collected=(),
            gold=each.gold,
            pinned=each.pinned,
            answering=answering,
        )
        for each in questions
    ]
