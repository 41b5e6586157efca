"""A run that is ready to be submitted."""

from msgspec import Struct

from cotrail.audit.plan_check import PLAN, plan_digest
from cotrail.common.humanize import count
from cotrail.core.questions import Question
from cotrail.models.commands.new_runs import Submission
from cotrail.models.records.runs import STAND_INS

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
        """Where something stands in for what the paper has, and why; and where repeats are in vain."""
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
