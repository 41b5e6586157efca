"""Workers by hand: steps are claimed, carried out and committed without Celery, at no cost."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, update

from benchmarks.contenders.cotrail import submission
from benchmarks.costless import CostlessModel, CostlessRetriever
from benchmarks.workload import question
from cotrail.configuration.settings import Settings
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.history import Outcome
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.questions import Question
from cotrail.core.results import Retrieved
from cotrail.models.commands.retrying import end_unbegun
from cotrail.models.commands.submission import submit
from cotrail.models.execution.admission import close_run, runs_to_close
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import take_suspects, take_unsent
from cotrail.models.records.runs import FindSystem, Runs
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import steps
from cotrail.systems.registry import find_system
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from tests.conftest import Eventually

STEPS = 7
"""Steps of a question."""


@contextmanager
def working_here(
    settings: Settings, sent: list[Dispatch], monkeypatch: pytest.MonkeyPatch, find: FindSystem = find_system
) -> Iterator[Runtime]:
    """A worker in this process; sent: takes its messages; find: knows the systems."""
    monkeypatch.setattr("cotrail.tasks.runtime.send", sent.extend)
    made = Runtime(settings)
    made.ledger.runs = Runs(find)
    monkeypatch.setattr("cotrail.tasks.step.current_runtime", lambda: made)
    yield made
    made.stop()
    made.close()
    disconnect(made)


def disconnect(runtime: Runtime) -> None:
    """Closes its connections, so that the database can be removed."""
    for leases in (runtime.ledger, runtime._beats):
        leases.engine.dispose()


LEASE = 60.0
MILLISECONDS = 2.5
"""Milliseconds that are recorded for each computed step."""


def ask(asked: int) -> list[Question]:
    return [Question(id=f"q{n}", text=question(n)) for n in range(asked)]


def begin(engine: Engine, asked: int = 1, **changes: Any) -> list[Dispatch]:
    """Submits a run and returns its first messages, as if all its questions were admitted at once."""
    submit(engine, replace(submission(), **changes), ask(asked), find_system)
    return unsent(engine)


def admit_all(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(update(steps).where(steps.c.state == StepState.WAITING).values(state=StepState.READY))


def unsent(engine: Engine, kind: str = "retrieve") -> list[Dispatch]:
    """The messages that maintenance would send, if it admitted all questions at once."""
    admit_all(engine)
    with engine.begin() as connection:
        return take_unsent(connection, kind, 1000)


def suspect(engine: Engine) -> list[Dispatch]:
    """The next steps suspected of killing their workers, as maintenance sends them."""
    with engine.begin() as connection:
        return take_suspects(connection)


def executed(claim: Claim) -> Outcome:
    action = claim.carried_out
    if isinstance(action, Retrieve):
        return Retrieved(hits=CostlessRetriever().find(action.query)[: action.count])
    assert isinstance(action, Reason | Read)
    return CostlessModel().generate(GenerationRequest(action.prompt, action.until, action.max_tokens))


def completed(claim: Claim | None, outcome: Outcome | None = None) -> Completion:
    """The outcome of a claimed step: its twin's if it adopts one, else the given one or that of carrying it out."""
    assert claim is not None
    if claim.adopted is not None:
        return Completion(claim=claim, outcome=claim.adopted.outcome, milliseconds=claim.adopted.milliseconds)
    return Completion(claim=claim, outcome=outcome or claim.given or executed(claim), milliseconds=MILLISECONDS)


def run_to_end(ledger: Ledger, messages: Sequence[Dispatch]) -> int:
    """Carries out one step after another, as workers would; returns how many were computed."""
    computed = 0
    while messages:
        claims = [claim for claim in ledger.claim(messages) if claim is not None]
        computed += sum(claim.adopted is None for claim in claims)
        messages = [m for following in ledger.commit([completed(claim) for claim in claims]) for m in following]
    return computed


def end_all_unbegun(engine: Engine) -> None:
    """Ends what hasn't begun of runs whose budgets are used up, as maintenance does: a part at a time."""
    while end_unbegun(engine):
        pass


def close_runs(engine: Engine) -> list[str]:
    """Closes the runs whose questions have all ended, as maintenance does."""
    with engine.begin() as connection:
        due = runs_to_close(connection)
    return [run_id for run_id in due if close_run(engine, run_id)]


def carry_out_all(sent: list[Dispatch], ended: Callable[[], bool], eventually: Eventually) -> None:
    """Carries out what was sent, and what follows from it, until the question has ended."""

    def has_ended() -> bool:
        while sent:
            perform(sent.pop(0), carry_out)
        return ended()

    eventually(has_ended, "the question has ended")
