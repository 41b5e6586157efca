"""A run that is ready to be submitted."""

from msgspec import Struct

from cotrail.audit.plan_check import PLAN, plan_digest
from cotrail.core.questions import Question
from cotrail.models.commands.new_runs import Submission
from cotrail.services.runs.provenance import STAND_INS


class PreparedRun(Struct, frozen=True, kw_only=True):
    """A run that can be submitted: all checks have passed.

    missing_gold: how many gold paragraphs of the questions the corpus lacks, which no system can then find.
    """

    submission: Submission
    questions: tuple[Question, ...]
    missing_gold: int = 0

    @property
    def plan(self) -> str:
        """The digest of its plan."""
        return plan_digest(self.submission.provenance[PLAN])

    @property
    def notes(self) -> tuple[str, ...]:
        """Where something stands in for what the paper has, and why."""
        return tuple(self.submission.provenance.get(STAND_INS, ()))
