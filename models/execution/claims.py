"""Claims of steps, and what becomes of them."""

from msgspec import Struct

from cotrail.core.edits import StepEdit, edited, given
from cotrail.core.history import Outcome
from cotrail.core.results import Generated, Result
from cotrail.core.system import Action
from cotrail.models.records.runs import RunPlan


class ClaimKey(Struct, frozen=True, kw_only=True):
    """Key of a claim.

    epoch: how often the step has been claimed, this time included. It is the claim's fencing token: statements that end
    or return a step name it, and so change nothing once another worker has claimed the step.
    """

    step_id: int
    epoch: int
    question_id: int


class Adopted(Struct, frozen=True, kw_only=True):
    """A result that another step has already; step_id: that step; milliseconds: how long computing it took."""

    step_id: int
    outcome: Result
    milliseconds: float


class Claim(ClaimKey, frozen=True, kw_only=True):
    """A claimed step, with all that is needed to execute it.

    action: the one that the system asked for; edit: what a person put in the place of a part of it.
    adopted: where another step has its result already: that result is committed, and nothing executed.
    """

    action: Action
    run: RunPlan
    edit: StepEdit | None = None
    adopted: Adopted | None = None

    @property
    def carried_out(self) -> Action:
        """The action that is executed."""
        return edited(self.action, self.edit)

    @property
    def given(self) -> Generated | None:
        """The result that a person gave it: that one is committed, and nothing executed."""
        return given(self.action, self.edit)


class Completion(Struct, frozen=True, kw_only=True):
    """A claimed step and how it ended."""

    claim: Claim
    outcome: Outcome
    milliseconds: float


class Renewal(Struct, frozen=True):
    """The outcome of a heartbeat for the leases that a worker holds.

    renewed: the claims whose leases were extended; lost: those that another worker has taken over, or whose step has
    ended, so that no result of theirs counts. A claim in neither is being changed by another transaction just now, or
    its lease ran out and no worker has claimed the step since.
    """

    renewed: list[Claim]
    lost: list[Claim]
