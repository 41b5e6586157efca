"""The plan of a run: everything that decides what it asks and how it will be judged, known at its submission.

Stating hypothesis, measure and analysis before the data are seen is what separates a test from a search among results
(Nosek et al. 2018, The preregistration revolution).
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from cotrail.audit.asked_questions import AskedQuestions
from cotrail.audit.plan_check import PLAN, plan_digest
from cotrail.core.binding import Binding
from cotrail.core.budgets import Budgets
from cotrail.core.repeats import Repeat
from cotrail.errors import CotrailError

Name = Annotated[str, Meta(min_length=1)]


class Comparison(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The comparison that will be made.

    others: the run to compare with, or several; a run's id or name, or `EXPERIMENT/CELL`; it need not be there yet.
    metric: by which they are compared; the primary one where it is empty.
    alpha: how often, at most, equal systems may be called different.
    smallest_difference: of the metric's means, below which a difference doesn't matter.
    """

    others: Name | tuple[Name, ...] = field(name="with")
    metric: str = ""
    alpha: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    smallest_difference: Annotated[float, Meta(gt=0)] | None = None

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs to compare with, as they are named."""
        return (self.others,) if isinstance(self.others, str) else self.others


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
    comparison: Comparison | None
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
