"""The plan of a run as names and values that people read."""

from collections.abc import Iterator

from cotrail.common.short_digests import shortened
from cotrail.core.binding import OWN_FIELDS
from cotrail.core.budgets import Budget
from cotrail.evaluation.plans.plan import Comparison, Plan
from cotrail.services.views.reports.configuration import local
from cotrail.services.views.run_plan import RunPlan

UNPLANNED = "none: the run was submitted before plans were recorded"


def planned(described: RunPlan) -> Iterator[tuple[str, str]]:
    """What was planned, and when it was sealed."""
    plan = described.plan
    if plan is None:
        yield "plan", UNPLANNED
        return
    yield "sealed", f"{local(described.sealed)}, before the first step"
    if plan.hypothesis:
        yield "hypothesis", plan.hypothesis
    yield "metrics", ", ".join(plan.metrics)
    yield "primary", plan.primary or "none: nothing is published that answers could be compared with"
    yield "comparison", "none" if plan.comparison is None else _compared(plan.comparison)
    yield from _asked(plan)
    yield from _system(plan)
    yield from _limits(plan)


def _compared(comparison: Comparison) -> str:
    least = comparison.smallest_difference
    matters = "" if least is None else f", differences of {least:g} or more matter"
    others = " and ".join(comparison.runs)
    return f"with {others} by {comparison.metric}, alpha {comparison.alpha:g}{matters}"


def _asked(plan: Plan) -> Iterator[tuple[str, str]]:
    limit = "" if plan.limit is None else f", the first {plan.limit:,} of the file"
    yield "questions", f"{plan.questions.count:,} of {plan.dataset}{limit}, SHA-256 {shortened(plan.questions.asked)}"
    yield "answers", f"SHA-256 {shortened(plan.questions.answers)}"
    yield "gold", f"SHA-256 {shortened(plan.questions.gold)}"


def _system(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "system", f"{plan.system}, version {plan.system_version}, settings SHA-256 {shortened(plan.settings)}"
    for form, digest in plan.demonstrations.items():
        yield "demonstrations", f"{form}, SHA-256 {shortened(digest)}"
    for name, revision in plan.binding.corpora.items():
        yield "corpus", f"{name}, revision {shortened(revision)}"
    for role in (*OWN_FIELDS, *plan.binding.pins):
        if identity := plan.binding.engine(role):
            yield role.replace("_", " "), shortened(identity)
    yield "profile", f"{plan.binding.profile}, temperature {plan.binding.temperature:g}, seed {plan.binding.seed}"
    if plan.cell:
        yield "experiment", f"{plan.experiment}, {plan.cell}"
    if plan.origin:
        yield "origin", f"{plan.origin}, forked at {plan.forked_at or 'the first step that differs'}"


def _limits(plan: Plan) -> Iterator[tuple[str, str]]:
    for of, budget in (("question", plan.budgets.question), ("run", plan.budgets.run)):
        if limits := _amounts(budget):
            yield f"budget of {'each question' if of == 'question' else 'the run'}", limits
    if plan.until:
        yield "until", plan.until


def _amounts(budget: Budget) -> str:
    amounts = ((name, getattr(budget, name)) for name in budget.__struct_fields__)
    return ", ".join(f"{amount:,} {name}" for name, amount in amounts if amount is not None)
