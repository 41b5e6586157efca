"""Leases of claimed steps: renewed by heartbeats, and given up by returning the step or blocking its question."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace
from sqlalchemy import Engine

from cotrail.core.results import Failure, failure_of
from cotrail.models.execution import batched_steps, statements
from cotrail.models.execution.claims import Claim, ClaimKey, Renewal
from cotrail.models.records.budgets import reason_here
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.base import Rows
from cotrail.models.schema.states import AttemptOutcome


class Leases:
    """The leases of one worker process.

    worker: names the process in the store; lease_seconds: how long a lease lasts without a heartbeat.
    """

    def __init__(self, engine: Engine, worker: str, lease_seconds: float) -> None:
        self.engine = engine
        self.worker = worker
        self.lease_seconds = lease_seconds

    def beat(self, held: Sequence[Claim]) -> Renewal:
        """Heartbeat: renew the leases of these claims, as far as they are still this worker's."""
        with self.engine.begin() as connection:
            beaten = connection.execute(statements.BEAT, {"rows": _keys(held), "lease_seconds": self.lease_seconds})
            kept = {(row.id, row.epoch): row.renewed for row in beaten}
        renewals = [(claim, kept.get((claim.step_id, claim.epoch))) for claim in held]
        return Renewal(
            renewed=[claim for claim, renewed in renewals if renewed],
            lost=[claim for claim, renewed in renewals if renewed is None],
        )

    def retries(self, claim: Claim) -> int:
        """Return how often a step was given back to be tried again, since it last failed for good."""
        with self.engine.begin() as connection:
            return connection.execute(statements.RETRIES, {"step_id": claim.step_id}).scalar_one()

    def retry(self, claim: Claim, error: BaseException, delay_seconds: float) -> None:
        """Give a step back to be tried again after a while."""
        self._give_back(_keys([claim]), AttemptOutcome.RETRIED, failure_of(error), delay_seconds)

    def hold(self, claim: Claim, error: BaseException, delay_seconds: float) -> None:
        """Give a step back that found a server away; that doesn't count as a try."""
        self._give_back(_keys([claim]), AttemptOutcome.UNAVAILABLE, failure_of(error), delay_seconds)

    def defer(self, claim: Claim, delay_seconds: float) -> None:
        """Give a step back that wasn't begun: its claim leaves no attempt."""
        with self.engine.begin() as connection:
            parameters = {"rows": _keys([claim]), "holder": self.worker, "delay_seconds": delay_seconds}
            connection.execute(statements.DEFER, parameters)

    def release(self, claims: Iterable[Claim]) -> None:
        """Give steps back that other workers may take at once."""
        self._give_back(_keys(claims), AttemptOutcome.RELEASED)

    def hand_over(self, claim: ClaimKey, model_name: str, body: str) -> None:
        """Give a step over to the next batch of a model (`cotrail.models.execution.batched_steps`)."""
        with self.engine.begin() as connection:
            batched_steps.hand_over(connection, claim, self.worker, model_name, body)

    def batch_answers(self, claim: ClaimKey) -> tuple[str, ...]:
        """Return what was answered to the requests of a step that is asked in batches, as JSON."""
        with self.engine.begin() as connection:
            return batched_steps.read_answers(connection, claim.step_id)

    def forget_answers(self, claim: ClaimKey) -> None:
        """Remove these answers, so that the step is asked again."""
        with self.engine.begin() as connection:
            batched_steps.clear(connection, [claim.step_id])

    def disclaim(self, messages: Iterable[Dispatch]) -> None:
        """Give back what these messages may have claimed: the connection was lost before the claim was answered."""
        # A claim counts the epoch up, and so would have the one after the message's.
        rows = [{"id": message.step_id, "epoch": message.epoch + 1} for message in messages]
        self._give_back(rows, AttemptOutcome.RELEASED)

    def block(self, claim: ClaimKey, error: BaseException) -> None:
        """Block a question until a person has fixed what the error says, unless the claim was lost meanwhile."""
        reason = reason_here(error)
        paid = replace(reason, written=failure_of(error).written)
        question = {"blocking": claim.question_id}
        with self.engine.begin() as connection:
            held = {"rows": _keys([claim]), "holder": self.worker}
            # The question first, as commits lock it before its steps: the other order could deadlock with them.
            if connection.execute(statements.BLOCK, {**question, **held, "reason": reason}).rowcount:
                connection.execute(statements.GIVE_BACK, self._returned(_keys([claim]), AttemptOutcome.BLOCKED, paid))
                connection.execute(statements.BLOCK_STEPS, question)

    def _give_back(
        self, rows: Rows, outcome: AttemptOutcome, error: Failure | None = None, delay_seconds: float = 0
    ) -> None:
        with self.engine.begin() as connection:
            connection.execute(statements.GIVE_BACK, self._returned(rows, outcome, error, delay_seconds))

    def _returned(
        self, rows: Rows, outcome: AttemptOutcome, error: Failure | None, delay_seconds: float = 0
    ) -> dict[str, object]:
        return {
            "rows": rows,
            "holder": self.worker,
            "outcome": outcome,
            "error": error,
            "delay_seconds": delay_seconds,
        }


def _keys(claims: Iterable[ClaimKey]) -> Rows:
    return [{"id": claim.step_id, "epoch": claim.epoch} for claim in claims]
