"""What is done to all questions of a run is done by chunks: nobody waits for it, and it can be gone on with."""

from collections.abc import Callable, Sequence
from functools import partial

import pytest
from sqlalchemy import Connection, Engine, func, select

from cotrail.core.results import Failure
from cotrail.errors import CorpusChangedError, InputError
from cotrail.models.commands.control import being_cancelled, by_chunks, cancel, pause, resume
from cotrail.models.commands.retrying import retry
from cotrail.models.execution.leases import Claim
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.progress import read_progress
from cotrail.models.records.questions import MOST_REPLAYED
from cotrail.models.schema.states import QuestionStatus, StepState
from cotrail.models.schema.tables import questions, runs, steps
from cotrail.services.runs.speed import RunSpeed
from cotrail.systems.registry import find_system
from cotrail.workers.maintenance import continue_cancelling
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, STEPS, begin, close_runs, completed, run_to_end, unsent

pytestmark = pytest.mark.usefixtures("verified")

RUN = "costless"
ASKED = MOST_REPLAYED + 20
FAILURE = Failure(type="IndexBroken", message="no")

End = Callable[[Ledger, list[Claim]], None]


class BrokenOff(Exception):  # noqa: N818 - it stands for a SIGKILL
    """The end of a command in the middle of its work."""


def die(done: int) -> None:
    if done:
        raise BrokenOff


def break_off(verb: Callable[..., object], engine: Engine, **arguments: object) -> None:
    """Does the first chunk of it, and dies before the second."""
    with pytest.raises(BrokenOff):
        verb(engine, RUN, report=die, **arguments)


def block_all(ledger: Ledger, claims: list[Claim]) -> None:
    for claim in claims:
        ledger.block(claim, CorpusChangedError("indexed again"))


def fail_all(ledger: Ledger, claims: list[Claim]) -> None:
    ledger.commit([completed(claim, FAILURE) for claim in claims])


@pytest.fixture
def stop_all(engine: Engine) -> Callable[[End], Ledger]:
    """Has all questions of a run blocked, or fail."""

    def stop_all(end: End) -> Ledger:
        ledger = Ledger(engine, "w", LEASE, find_system)
        end(ledger, [claim for claim in ledger.claim(begin(engine, ASKED)) if claim])
        return ledger

    return stop_all


@pytest.fixture
def standing(query: Query) -> Callable[[], dict[str, int]]:
    """How many questions stand where."""
    counted = select(questions.c.status, func.count().label("number")).group_by(questions.c.status)
    return lambda: {row["status"]: row["number"] for row in query(counted)}


@pytest.mark.parametrize("end", [block_all, fail_all])
def test_trying_again_that_was_broken_off_is_gone_on_with(
    end: End, engine: Engine, stop_all: Callable[[End], Ledger], standing: Callable[[], dict[str, int]]
) -> None:
    ledger = stop_all(end)
    [(status, _)] = standing().items()
    assert close_runs(engine) == ([RUN] if end is fail_all else [])
    break_off(retry, engine, find_system=find_system, failed=True, blocked=True)
    assert standing() == {"open": MOST_REPLAYED, status: ASKED - MOST_REPLAYED}
    assert run_to_end(ledger, unsent(engine)) == MOST_REPLAYED * STEPS
    assert close_runs(engine) == ([RUN] if end is fail_all else [])
    retried = retry(engine, RUN, find_system, failed=True, blocked=True)
    assert retried.failed + retried.blocked == ASKED - MOST_REPLAYED
    assert retried.stuck == 0
    assert run_to_end(ledger, unsent(engine)) == (ASKED - MOST_REPLAYED) * STEPS
    assert standing() == {"finished": ASKED}


def test_a_resume_that_was_broken_off_is_gone_on_with(
    engine: Engine, stop_all: Callable[[End], Ledger], standing: Callable[[], dict[str, int]], query: Query
) -> None:
    ledger = stop_all(block_all)
    pause(engine, RUN)
    break_off(resume, engine, find_system=find_system)
    assert query(select(runs.c.desired_state)) == [{"desired_state": "active"}]
    assert standing() == {"open": MOST_REPLAYED, "blocked": ASKED - MOST_REPLAYED}
    resume(engine, RUN, find_system)
    assert run_to_end(ledger, unsent(engine)) == ASKED * STEPS


def test_what_is_tried_again_is_admitted_like_what_was_never_begun(
    engine: Engine, stop_all: Callable[[End], Ledger], query: Query
) -> None:
    for end in (block_all, fail_all):
        if end is block_all:
            stop_all(end)
        else:
            fail_all(
                Ledger(engine, "w", LEASE, find_system),
                [c for c in Ledger(engine, "w", LEASE, find_system).claim(unsent(engine)) if c],
            )
        retry(engine, RUN, find_system, failed=True, blocked=True)
        assert {row["state"] for row in query(select(steps.c.state))} == {StepState.WAITING}


def by_command(engine: Engine) -> None:
    cancel(engine, RUN)


def by_maintenance(engine: Engine) -> None:
    while True:
        continue_cancelling(engine)
        with engine.connect() as connection:
            if not being_cancelled(connection):
                return


@pytest.mark.parametrize("go_on", [by_command, by_maintenance])
def test_a_cancelling_that_was_broken_off_is_finished(
    go_on: Callable[[Engine], None], engine: Engine, query: Query, standing: Callable[[], dict[str, int]]
) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    *messages, blocked, last = begin(engine, ASKED)
    claims = ledger.claim(messages[MOST_REPLAYED : MOST_REPLAYED + 2])
    block_all(ledger, [claim for claim in ledger.claim([blocked]) if claim])
    break_off(cancel, engine)
    assert standing() == {"cancelled": MOST_REPLAYED, "open": ASKED - MOST_REPLAYED - 1, "blocked": 1}
    assert ledger.claim([last]) == [None]
    with pytest.raises(InputError, match="is cancelled, which is final"):
        resume(engine, RUN, find_system)
    assert close_runs(engine) == []
    assert [len(following) for following in ledger.commit([completed(claims[0])])] == [1]
    go_on(engine)
    assert ledger.commit([completed(claims[1])]) == [[]]
    assert standing() == {"cancelled": ASKED}
    assert {row["state"] for row in query(select(steps.c.state))} == {"cancelled", "finished"}
    with pytest.raises(InputError, match="is cancelled, which is final"):
        cancel(engine, RUN)
    assert close_runs(engine) == [RUN]


@pytest.mark.parametrize("verb", [cancel, partial(resume, find_system=find_system)], ids=["cancel", "resume"])
def test_between_two_chunks_nothing_is_locked_and_within_one_few_questions_are(
    verb: Callable[..., None], engine: Engine, stop_all: Callable[[End], Ledger]
) -> None:
    stop_all(block_all)
    told: list[int] = []

    def look(done: int) -> None:
        told.append(done)
        with engine.begin() as connection:
            for table in (runs, questions, steps):
                connection.execute(select(table.c.id).with_for_update(nowait=True))

    verb(engine, RUN, report=look)
    assert told[-1] == ASKED
    assert max(later - earlier for earlier, later in zip([0, *told], told, strict=False)) <= MOST_REPLAYED


def test_other_questions_of_the_run_go_on_while_a_chunk_is_done(engine: Engine) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    claims = ledger.claim(begin(engine, ASKED)[-1:])
    recorded: list[int] = []

    def record(connection: Connection, ids: Sequence[int]) -> int:
        if claims:
            recorded.extend(map(len, ledger.commit([completed(claims.pop())])))
        return len(ids)

    assert sum(by_chunks(engine, RUN, QuestionStatus.OPEN, record)) == ASKED
    assert recorded == [1]


def test_a_run_that_is_being_cancelled_is_shown_as_that(engine: Engine) -> None:
    begin(engine, ASKED)
    break_off(cancel, engine)
    with engine.connect() as connection:
        progress = read_progress(connection, RUN)
    assert (progress.state, progress.open) == ("cancelled", ASKED - MOST_REPLAYED)
    assert str(RunSpeed().waits_for(progress)).startswith("It is being cancelled")


def test_maintenance_does_not_wait_for_who_holds_what_is_to_be_cancelled(
    engine: Engine, standing: Callable[[], dict[str, int]]
) -> None:
    begin(engine, ASKED)
    break_off(cancel, engine)
    with engine.begin() as frozen:
        frozen.execute(select(questions.c.id).where(questions.c.status == "open").with_for_update())
        continue_cancelling(engine)
    assert standing() == {"cancelled": MOST_REPLAYED, "open": ASKED - MOST_REPLAYED}
    by_maintenance(engine)
    assert standing() == {"cancelled": ASKED}
