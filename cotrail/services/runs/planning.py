"""Plans of runs: made as a run is submitted, of all that decides it, and sealed with its configuration."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.audit.asked_questions import AskedQuestions, asked_questions
from cotrail.audit.run_check import PLAN, json_digest, plan_digest, whole_numbers
from cotrail.common.humanize import count
from cotrail.core.budgets import Budgets
from cotrail.core.questions import Question
from cotrail.core.repeats import read_repeat
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics.metric import ScoredQuestion
from cotrail.evaluation.metrics.stop_rules import UNTIL
from cotrail.evaluation.plans.plan import Plan, PlanFile, PlannedMetrics, planned_metrics, read_plan_file
from cotrail.models.commands.new_runs import Submission
from cotrail.models.records.runs import BUDGETS, STAND_INS
from cotrail.models.records.steps import Dispatch
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
            searching=submission.searches,
        )
        for each in questions
    ]


# A run that is ready to be submitted.

ALIKE = (
    "All repeats will be equal: nothing is sampled at temperature 0, and the profile is deterministic. A `temperature` "
    "above 0 or the profile `fast` lets them differ."
)


class PreparedRun(Struct, frozen=True, kw_only=True):
    """A run that can be submitted: all checks have passed.

    missing_gold: how many gold paragraphs of the questions the corpus lacks, which no system can then find.
    further: the same run with further seeds, where it is repeated.
    alike: whether those can't differ from it.
    """

    submission: Submission
    questions: tuple[Question, ...]
    missing_gold: int = 0
    further: tuple[Submission, ...] = ()
    alike: bool = False

    @property
    def runs(self) -> tuple[Submission, ...]:
        """All that are submitted: one, or each repeat."""
        return (self.submission, *self.further)

    @property
    def notes(self) -> tuple[str, ...]:
        """Where something replaces what the paper has, and why; and where repeats are in vain."""
        stand_ins = tuple(self.submission.provenance.get(STAND_INS, ()))
        return (*stand_ins, ALIKE) if self.alike else stand_ins

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the run lacks, before its notes."""
        if not self.missing_gold:
            return self.notes
        missing = (
            f"{count(self.missing_gold, 'gold paragraph')} of these questions not in the corpus "
            f"{' or '.join(self.submission.binding.corpora)}: paragraph recall can't reach 1. "
            "`cotrail data build` makes a corpus that has them."
        )
        return (missing, *self.notes)


def plan_of(run: Submission) -> str:
    """The digest of a run's plan."""
    return plan_digest(run.provenance[PLAN])


# A question that is recorded to be answered at once.


class AskedQuestion(Struct, frozen=True, kw_only=True):
    """A question whose messages are still to be sent.

    run: the id of its run; id: that of its row; warnings: what the run lacks, or has another thing for.
    """

    run: str
    id: int
    messages: tuple[Dispatch, ...]
    warnings: tuple[str, ...] = ()
