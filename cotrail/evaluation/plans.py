"""The plan of a run: what decides what it asks and how it is judged, sealed at submission, and deviations from it.

Stating hypothesis, measure and analysis before the data are seen is what separates a test from a search among results
(Nosek et al. 2018, The preregistration revolution).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from cotrail.audit.question_sequence import AskedQuestions
from cotrail.audit.run_check import PLAN, plan_digest
from cotrail.common.humanize import count
from cotrail.common.nearest import unknown
from cotrail.common.refusals import refusal
from cotrail.common.structs import shortened
from cotrail.core.binding import Binding
from cotrail.core.budgets import RUN, Budget, Budgets
from cotrail.core.history import LIMIT, UNTIL, Irregularities, shown_ends
from cotrail.core.repeats import Repeat
from cotrail.errors import CotrailError, InputError
from cotrail.evaluation.comparison.differences import Demands
from cotrail.evaluation.metrics.answer_metrics import METRICS, main_metrics
from cotrail.evaluation.metrics.metric import Metric, ScoredQuestion

Name = Annotated[str, Meta(min_length=1)]


class PlannedComparison(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The comparison that will be made.

    others: the run to compare with, or several; a run's id or name, or `EXPERIMENT/CELL`; it need not be there yet.
    metric: by which they are compared; the primary one where it is empty. alpha: how often, at most, equal systems may
    be called different. smallest_difference: of the metric's means, below which a difference doesn't matter.
    """

    others: Name | tuple[Name, ...] = field(name="with")
    metric: str = ""
    alpha: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    smallest_difference: Annotated[float, Meta(gt=0)] | None = None

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs to compare with, as they are named."""
        return (self.others,) if isinstance(self.others, str) else self.others

    @property
    def demands(self) -> Demands:
        """What is asked of a difference, apart from that its interval leaves 0 out."""
        return Demands(alpha=self.alpha, least=self.smallest_difference or 0.0)


class Plan(Struct, frozen=True, kw_only=True):
    """The plan of a run.

    settings: the digest over the system's settings, every default spelled out; demonstrations: their digests by form.
    binding: the identities of models and corpora, the profile, temperature and seed.
    questions: their number, and the digests over what is asked, the answers and the gold paragraphs.
    limit: where only the first questions of the file were taken. until: a rule by which the run may end sooner.
    repeat: which of several runs with other seeds it is; None of the only one.
    metrics: those that will be reported; primary: the one that decides, empty where nothing can be scored.
    experiment, cell: where the run is part of an experiment. origin, forked_at: where it is forked from another run.
    """

    system: str
    system_version: int
    settings: str
    demonstrations: dict[str, str]
    binding: Binding
    dataset: str
    questions: AskedQuestions
    limit: int | None
    budgets: Budgets
    until: str | None
    repeat: Repeat | None
    metrics: tuple[str, ...]
    primary: str
    comparison: PlannedComparison | None
    hypothesis: str
    experiment: str | None
    cell: str | None
    origin: str | None
    forked_at: str | None

    @property
    def digest(self) -> str:
        """What people publish before the run, `sha256:` and 64 hexadecimal digits."""
        return plan_digest(self)


def read_plan(provenance: Mapping[str, Any]) -> Plan | None:
    """The plan in a run's provenance; None where the run was submitted before plans were recorded.

    CotrailError where it can't be read, which means that it was changed.
    """
    plan = provenance.get(PLAN)
    try:
        return None if plan is None else msgspec.convert(plan, Plan)
    except msgspec.ValidationError as error:
        raise CotrailError("the run's plan can't be read; `cotrail audit verify RUN` names what was changed") from error


# Plan files: what a person states of a run's evaluation beforehand, and the metrics that its questions allow.

LATEST = "latest"
"""The run submitted last, which is another one tomorrow."""


class PlanFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a plan file states; metrics: the main ones that the questions allow; primary: the first of them."""

    metrics: tuple[str, ...] = ()
    primary: str = ""
    hypothesis: str = ""
    comparison: PlannedComparison | None = None


def read_plan_file(values: Mapping[str, Any], where: str) -> PlanFile:
    """The statements of a plan file, whose keys these are; InputError names what can't be used. where: the file."""
    try:
        stated = msgspec.convert(values, PlanFile)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {refusal(error, PlanFile, values)}; correct it") from error
    compared = (stated.comparison.metric,) if stated.comparison else ()
    for name in (*stated.metrics, stated.primary, *compared):
        if name and name not in METRICS:
            raise InputError(f"{where}: {unknown('metric', name, METRICS)}")
    if stated.comparison and LATEST in stated.comparison.runs:
        raise InputError(f"{where}: `latest` is another run tomorrow: name the run to compare with by its id")
    return stated


class PlannedMetrics(Struct, frozen=True, kw_only=True):
    """The metrics that will be reported, the one that decides, and the comparison by one of them."""

    metrics: tuple[str, ...]
    primary: str
    comparison: PlannedComparison | None


def planned_metrics(stated: PlanFile, questions: Sequence[ScoredQuestion]) -> PlannedMetrics:
    """What a plan says of metrics, of questions that nobody has answered yet.

    Raises InputError for a metric that the questions publish nothing for, or that isn't among those that are reported.
    """
    names = stated.metrics or tuple(metric.name for metric in main_metrics() if _measures(metric, questions))
    if lacking := next((name for name in stated.metrics if not _measures(METRICS[name], questions)), None):
        raise InputError(f"the plan's metric {lacking} needs what none of the questions publishes; name others")
    primary = stated.primary or next((name for name in names if not METRICS[name].is_count), "")
    comparison = _by(stated.comparison, primary)
    for name in (primary, comparison.metric if comparison else primary):
        if name and name not in names:
            raise InputError(f"the plan reports {', '.join(names)}, and not {name!r}, which is to decide: add it")
    return PlannedMetrics(metrics=names, primary=primary, comparison=comparison)


def _by(comparison: PlannedComparison | None, primary: str) -> PlannedComparison | None:
    """The comparison with all that it leaves open spelled out."""
    if comparison is None:
        return None
    metric = comparison.metric or primary
    if not metric:
        raise InputError("the plan's comparison needs a metric, and the questions publish nothing to score by")
    return replace(comparison, others=comparison.runs, metric=metric)


def _measures(metric: Metric, questions: Sequence[ScoredQuestion]) -> bool:
    """Whether the metric has a value for any of the questions."""
    return any(metric.value(question) is not None for question in questions)


# Deviations: where a run, or what is reported of it, departed from its plan. A pure function of recorded facts.

PARTS = {"asked": "texts", "answers": "published answers", "gold": "gold paragraphs"}
"""What the digests over questions are called."""


class ComparedRun(Struct, frozen=True, kw_only=True):
    """A run that the plan names to compare with.

    named: as the plan does; run: its id, None where there is no such run (yet).
    unended: its questions that haven't ended; same: whether it asks the same questions, with the same answers and gold.
    """

    named: str
    run: str | None = None
    unended: int = 0
    same: bool = False


class RunFacts(Irregularities, frozen=True, kw_only=True):
    """What the record holds of a run now.

    questions: their number and digests, computed from their rows as they are. ends: how many questions ended by what
    (`cotrail.core.history`). corpora: the present revisions of the plan's corpora by name, None where a corpus isn't on
    this machine. budgets: those of today, which a person may have raised; None where that isn't known.
    """

    questions: AskedQuestions
    ends: Mapping[str, int] = {}
    corpora: Mapping[str, str | None] = {}
    compared: tuple[ComparedRun, ...] = ()
    budgets: Budgets | None = None


def deviations(plan: Plan, facts: RunFacts) -> tuple[str, ...]:
    """Where the run departed from its plan, in words for a reader."""
    return (
        *_of_questions(plan, facts),
        *_of_ends(plan, facts),
        *_of_steps(plan, facts),
        *_of_corpora(plan, facts),
        *_of_comparison(facts),
    )


def remarks(plan: Plan, facts: RunFacts) -> tuple[str, ...]:
    """What the plan provides for and a reader should know: questions left out, limits, what is under way."""
    size = count(facts.questions.count, "question")
    limits = {end: number for end, number in facts.ends.items() if _is_planned(plan, end)}
    absent = [name for name in plan.binding.corpora if name in facts.corpora and facts.corpora[name] is None]
    said = (
        (plan.limit is not None, f"the plan takes the first {size} of the file (limit {plan.limit})"),
        (bool(limits), f"a limit of the plan ended questions: {shown_ends(limits)}"),
        (facts.unended > 0, f"{facts.unended:,} of {size} {'has' if facts.unended == 1 else 'have'}n't ended"),
        (bool(absent), f"there is no corpus {' or '.join(absent)} here whose revision could be compared"),
    )
    return tuple(text for is_so, text in said if is_so)


def unplanned(
    plan: Plan | None, metrics: Collection[str], runs: Collection[str], deciding: str = ""
) -> tuple[str, ...]:
    """What is shown and wasn't planned: metrics by name, and the runs that this one is compared with, by id.

    deciding: the metric that decides the comparison, if there is one.
    plan: with ids in place of the names of runs; None where the run was submitted before plans were recorded, which
        says nothing of what was intended.
    """
    if plan is None:
        return ()
    named = plan.comparison.runs if plan.comparison else ()
    others = tuple(run for run in dict.fromkeys(runs) if run not in named)
    unmeasured = tuple(name for name in dict.fromkeys(metrics) if name not in plan.metrics)
    compares_by = plan.comparison.metric if plan.comparison else ""
    decides_otherwise = deciding not in ("", compares_by) and compares_by
    return (
        *([f"the plan compares by {compares_by}, and {deciding} decides here"] if decides_otherwise else []),
        *(f"the plan doesn't report {name}" for name in unmeasured),
        *(f"the plan makes no comparison with {run}" for run in others),
    )


def reporting(plan: Plan | None) -> tuple[str, ...]:
    """What is shown below scores: the metrics that were planned."""
    if plan is None:
        return ()
    return (f"planned: {', '.join(plan.metrics)}" + (f"; {plan.primary} decides" if plan.primary else ""),)


def _of_questions(plan: Plan, facts: RunFacts) -> Iterator[str]:
    planned, now = plan.questions, facts.questions
    if now.count != planned.count:
        yield f"the run has {count(now.count, 'question')}, and {planned.count:,} {_were(planned.count)} planned"
    for part, words in PARTS.items():
        before, after = getattr(planned, part), getattr(now, part)
        if before != after:
            yield (
                f"the questions' {words} aren't those that were planned: their SHA-256 is {shortened(after)}, and was "
                f"{shortened(before)}"
            )


def _of_ends(plan: Plan, facts: RunFacts) -> Iterator[str]:
    for of in ("question", "run") if facts.budgets is not None else ():
        planned, now = getattr(plan.budgets, of), getattr(facts.budgets, of)
        for name in Budget.__struct_fields__:
            limit, before = getattr(now, name), getattr(planned, name)
            if limit is not None and before is not None and limit != before:
                yield f"the {of} budget of {name} was raised to {limit:,g}, and {before:,g} was planned"
    size = count(facts.questions.count, "question")
    of_the_run = [end for end in facts.ends if end.startswith((f"{LIMIT}{RUN}", UNTIL))]
    others = {end: facts.ends[end] for end in of_the_run if not _is_planned(plan, end)}
    if others:
        yield f"a limit that the plan doesn't have ended questions: {shown_ends(others)}"
    if facts.cancelled:
        unasked = f", {facts.unasked:,} of them before anything was asked" if facts.unasked else ""
        yield f"{facts.cancelled:,} of {size} {_were(facts.cancelled)} cancelled{unasked}"
    if facts.failed:
        yield f"{facts.failed:,} of {size} failed, which counts as a wrong answer"
    if facts.blocked:
        yield f"{facts.blocked:,} of {size} {'is' if facts.blocked == 1 else 'are'} blocked"


def _of_steps(plan: Plan, facts: RunFacts) -> Iterator[str]:
    if facts.retried:
        yield f"{count(facts.retried, 'question')} had failed and {_were(facts.retried)} tried again"
    if facts.taken_over:
        steps = count(facts.taken_over, "step")
        were = _were(facts.taken_over)
        yield f"{steps} of run {plan.origin} {were} taken over, recorded before this plan was sealed"


def _of_corpora(plan: Plan, facts: RunFacts) -> Iterator[str]:
    for name, revision in plan.binding.corpora.items():
        now = facts.corpora.get(name, revision)
        if now is not None and now != revision:
            yield f"the corpus {name} has another revision now, {shortened(now)}: the plan's was {shortened(revision)}"


def _of_comparison(facts: RunFacts) -> Iterator[str]:
    for other in facts.compared:
        if other.run is None:
            yield f"the run to compare with, {other.named}, isn't there"
            continue
        if other.unended:
            yield f"the run to compare with, {other.named}, still has {count(other.unended, 'question')} to answer"
        if not other.same:
            yield f"the run to compare with, {other.named}, has other questions, answers or gold paragraphs"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _is_planned(plan: Plan, end: str) -> bool:
    """Whether the plan has the limit that ended a question."""
    if end.startswith(UNTIL):
        return end.removeprefix(UNTIL) == plan.until
    limit = end.removeprefix(LIMIT)
    if limit == end:
        return False
    budget = plan.budgets.run if limit.startswith(RUN) else plan.budgets.question
    name = limit.removeprefix(RUN)
    return name in Budget.__struct_fields__ and getattr(budget, name) is not None
