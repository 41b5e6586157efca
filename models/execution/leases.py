"""Claims of steps and their leases: renewed by heartbeats, given up by returning the step or blocking its question."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import BigInteger, Connection, Engine, String, Text, any_, bindparam, func, not_, null, select, update
from sqlalchemy.dialects.postgresql import ARRAY, insert

from cotrail.core.edits import StepEdit, edited, given
from cotrail.core.history import Outcome
from cotrail.core.results import Failure, Generated, Result, failure_of
from cotrail.core.system import Action
from cotrail.models.execution import statements
from cotrail.models.records.budgets import reason_here
from cotrail.models.records.runs import RunPlan
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.base import Rows
from cotrail.models.schema.service_tables import batch_items
from cotrail.models.schema.states import AttemptOutcome, StepState
from cotrail.models.schema.tables import ACTIVE, ASKED, SERVED, attempts, runs, steps


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
        """Give a step over to the next batch of a model; nothing where it isn't this worker's any more.

        body: the request, as JSON. Answers to earlier requests of the step stay.
        """
        values = {"holder": self.worker, "for_model": model_name, "request_body": body}
        with self.engine.begin() as connection:
            connection.execute(_HAND_OVER, {"of_step": claim.step_id, "of_epoch": claim.epoch, **values})

    def batch_answers(self, claim: ClaimKey) -> tuple[str, ...]:
        """Return what was answered to the requests of a step that is asked in batches, as JSON."""
        with self.engine.begin() as connection:
            return tuple(connection.execute(_ANSWERS, {"of_step": claim.step_id}).scalar() or ())

    def forget_answers(self, claim: ClaimKey) -> None:
        """Remove these answers, so that the step is asked again."""
        with self.engine.begin() as connection:
            clear_batched(connection, [claim.step_id])

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
        return {"rows": rows, "holder": self.worker, "outcome": outcome, "error": error, "delay_seconds": delay_seconds}


def _keys(claims: Iterable[ClaimKey]) -> Rows:
    return [{"id": claim.step_id, "epoch": claim.epoch} for claim in claims]


# Steps that are asked in batches, as the workers see them, and turns of models that compute in a process.

_id, _epoch = bindparam("of_step", type_=BigInteger), bindparam("of_epoch", type_=BigInteger)
_ids = bindparam("ids", type_=ARRAY(BigInteger))

_held = (
    update(steps)
    .where(
        steps.c.id == _id,
        steps.c.epoch == _epoch,
        steps.c.state == StepState.RUNNING,
        steps.c.worker == bindparam("holder", type_=String),
    )
    .values(state=StepState.BATCHED, lease_until=null(), sent_at=null(), not_before=null())
    .returning(steps.c.id)
    .cte("held")
)
_item = insert(batch_items).from_select(
    ["step_id", "model_name", "body"],
    select(_held.c.id, bindparam("for_model", type_=Text), bindparam("request_body", type_=Text)),
)
_renewed = _item.on_conflict_do_update(
    index_elements=[batch_items.c.step_id],
    set_={
        "model_name": _item.excluded.model_name,
        "body": _item.excluded.body,
        "batch": null(),
        "since": func.now(),
        "returned": 0,
    },
)
_logged = (
    update(attempts)
    .where(attempts.c.step_id == _held.c.id, attempts.c.epoch == _epoch)
    .values(outcome=AttemptOutcome.BATCHED, ended_at=func.now())
)
_HAND_OVER = select(_held.c.id).add_cte(_renewed.cte("renewed"), _logged.cte("logged"))
_ANSWERS = select(batch_items.c.answers).where(batch_items.c.step_id == _id)
_CLEAR = update(batch_items).where(batch_items.c.step_id == func.any(_ids)).values(body=null(), answers=[], returned=0)


def clear_batched(connection: Connection, step_ids: Sequence[int]) -> None:
    """Remove requests and answers of steps that have ended, or that are to be asked again."""
    connection.execute(_CLEAR, {"ids": [*step_ids]})


# Turns: which of the waiting steps begin next where models compute, so that a slow one doesn't hold up the others.

_model = select(runs.c.model_name).where(runs.c.id == steps.c.run_id).scalar_subquery()
_waiting = (
    select(
        *(steps.c[name] for name in ("id", "epoch", "kind", "sequence", "sent_at")),
        _model.label("model"),
        ASKED.label("asked"),
    )
    .where(
        steps.c.kind == bindparam("wanted", type_=String),
        steps.c.state == StepState.READY,
        steps.c.sent_at.is_not(None),
        not_(SERVED),
        ACTIVE,
    )
    .subquery("waiting")
)
# What somebody waits for goes first, whichever model it needs. Within a model, the steps of the messages themselves go
# first, which the queue has put into their order already; then in the same order, by the levels of
# `cotrail.tasks.routing.priority`.
_depth = func.least(_waiting.c.sequence // 2, 3)
_own = _waiting.c.id == any_(bindparam("own", type_=ARRAY(BigInteger)))
_place = func.row_number().over(
    partition_by=_waiting.c.model,
    order_by=(_waiting.c.asked.desc(), _own.desc(), _depth.desc(), _waiting.c.sent_at, _waiting.c.id),
)
_placed = select(_waiting, _place.label("place")).subquery("placed")
_latest_turn = func.array_position(bindparam("latest", type_=ARRAY(String)), _placed.c.model)
_NEXT = (
    select(_placed.c.id, _placed.c.epoch, _placed.c.kind, _placed.c.sequence)
    .order_by(_placed.c.asked.desc(), _placed.c.place, _latest_turn.nulls_first())
    .limit(bindparam("room", type_=BigInteger))
)


def next_in_turn(
    connection: Connection, kind: str, own: Sequence[int], latest: Sequence[str], room: int
) -> list[Dispatch]:
    """Return up to `room` steps of a kind that wait for a model that computes, in the order in which they are to begin.

    own: the steps of the messages that came.
    latest: the models that had a turn, the one whose turn is longest ago first; those that had none go before them.
    """
    parameters = {"wanted": kind, "own": [*own], "latest": [*latest], "room": room}
    return [Dispatch(*row) for row in connection.execute(_NEXT, parameters)]
