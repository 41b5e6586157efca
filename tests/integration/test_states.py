"""The diagrams of states in docs/architecture.md, held against the changes that PostgreSQL sees."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, text

from benchmarks.contenders.cotrail import submission
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.budgets import Budget, Budgets
from cotrail.core.ports.batches import BatchAnswer
from cotrail.core.questions import Question
from cotrail.core.results import Failure
from cotrail.core.system import Answer, System, Together
from cotrail.errors import BlockedError, CorpusChangedError, TransientStepError, UnavailableError
from cotrail.models.commands.control import cancel, pause, resume
from cotrail.models.commands.forking import fork
from cotrail.models.commands.pruning import prune
from cotrail.models.commands.retrying import end_unbegun, raise_budget, retry
from cotrail.models.commands.submission import submit
from cotrail.models.execution import batches
from cotrail.models.execution.admission import LEAST_WINDOW, admit
from cotrail.models.execution.leases import Claim
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import expire_leases
from cotrail.models.records.runs import BUDGETS, FindSystem
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.states import AttemptOutcome, DesiredState, QuestionStatus, StepState
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.spec import find_spec
from tests.integration.agreeing_states import assert_states_agree
from tests.integration.stepping import LEASE, ask, completed, run_to_end

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"
COLUMNS = ("runs.desired_state", "questions.status", "steps.state", "attempts.outcome")
NOTHING, NULL = "[*]", "under_way"
"""How the diagrams call a row that isn't there, and a state that isn't set."""

FAILURE = Failure(type="IndexBroken", message="no")

Change = tuple[str, str, str]
"""A column, its value before and its value after."""


def search(question: Question, shots: Any, settings: Any) -> System:
    """Searches for three things at once."""
    yield Together(tuple(Retrieve(query=f"{question.text} {n}", count=1) for n in range(3)))
    return Answer(text="")


find_searching = partial(
    find_spec, tuple(replace(spec, open=search) if spec.name == "ircot" else spec for spec in SYSTEMS)
)

LOG = """
CREATE TABLE seen (name text, before text, after text, UNIQUE NULLS NOT DISTINCT (name, before, after));
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    value text := coalesce(to_jsonb(NEW) ->> TG_ARGV[0], 'under_way');
    before text := CASE TG_OP WHEN 'INSERT' THEN '[*]' ELSE coalesce(to_jsonb(OLD) ->> TG_ARGV[0], 'under_way') END;
BEGIN
    INSERT INTO seen VALUES (TG_TABLE_NAME || '.' || TG_ARGV[0], before, value) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
"""


@pytest.fixture
def seen(engine: Engine) -> Iterator[Callable[[], set[Change]]]:
    """What the database saw so far of changes in these columns."""
    with engine.begin() as connection:
        connection.execute(text(LOG))
        for table, column in (name.split(".") for name in COLUMNS):
            when = f"AFTER INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION see('{column}')"
            connection.execute(text(f"CREATE TRIGGER see {when}"))

    def read() -> set[Change]:
        with engine.begin() as connection:
            return {tuple(row) for row in connection.execute(text("SELECT * FROM seen WHERE before <> after"))}

    yield read
    with engine.begin() as connection:
        connection.execute(text("DROP FUNCTION see CASCADE; DROP TABLE seen"))


def drawn() -> set[Change]:
    """The arrows of the diagrams, but for those that merely say that a state is final."""
    diagrams = re.findall(r"```mermaid\nstateDiagram-v2\n    %% (\S+)\n(.*?)```", ARCHITECTURE.read_text(), re.DOTALL)
    assert [column for column, _ in diagrams] == list(COLUMNS)
    arrows = [
        (column, *arrow)
        for column, body in diagrams
        for arrow in re.findall(r"^    (\S+) --> (\w+): \S.*$", body, re.MULTILINE)
    ]
    assert len(arrows) == len(set(arrows))
    return set(arrows)


class World:
    """Runs of one or two questions, and what may become of them."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.ledger = Ledger(engine, "w", LEASE, find_system)
        self.runs = 0

    def begin(self, asked: int = 1, **changes: Any) -> list[Dispatch]:
        """A further run, admitted."""
        self.submit(asked, **changes)
        return self.admit()

    def admit(self) -> list[Dispatch]:
        with self.engine.begin() as connection:
            return admit(connection)

    def submit(self, asked: int = 1, systems: FindSystem = find_system, **changes: Any) -> None:
        self.runs += 1
        submit(self.engine, replace(submission(), id=self.run, **changes), ask(asked), systems)

    @property
    def run(self) -> str:
        return f"run-{self.runs}"

    def claim(self, ledger: Ledger | None = None) -> Claim:
        """The first step of a further run."""
        [claim] = (ledger or self.ledger).claim(self.begin())
        assert claim is not None
        return claim

    def expired(self) -> Claim:
        """One whose lease ran out."""
        claim = self.claim(Ledger(self.engine, "mute", 0, find_system))
        with self.engine.begin() as connection:
            assert expire_leases(connection) == [claim.step_id]
        return claim


def finish(world: World) -> None:
    run_to_end(world.ledger, world.begin())


def fail_and_retry(world: World) -> None:
    world.ledger.commit([completed(world.claim(), FAILURE)])
    retry(world.engine, world.run, find_system, failed=True, blocked=False)
    world.admit()


def give_back(world: World) -> None:
    world.ledger.release([world.claim()])
    world.ledger.retry(world.claim(), TransientStepError("later"), 0)
    world.ledger.hold(world.claim(), UnavailableError("away"), 0)


def block_and_resume(world: World) -> None:
    world.ledger.block(world.claim(), CorpusChangedError("indexed again"))
    resume(world.engine, world.run, find_system)
    world.admit()
    world.ledger.block(world.claim(), CorpusChangedError("indexed again"))
    cancel(world.engine, world.run)


def block_some_of_many(world: World) -> None:
    """Three steps a question, which begin together; of the last question only the first is admitted."""
    asked = LEAST_WINDOW // 3 + 1
    world.submit(asked, find_searching)
    messages = world.admit()
    assert len(messages) == LEAST_WINDOW < 3 * asked
    for claim in world.ledger.claim([messages[0], messages[-1]]):
        assert claim is not None
        world.ledger.block(claim, CorpusChangedError("indexed again"))
    cancel(world.engine, world.run)


def come_late(world: World) -> None:
    world.ledger.commit([completed(world.expired())])
    world.ledger.commit([completed(world.expired(), FAILURE)])


def give_up(world: World) -> None:
    world.ledger.give_up([world.expired().step_id], FAILURE)


def wait_for_a_twin(world: World) -> None:
    with world.engine.begin() as connection:
        connection.execute(text("INSERT INTO experiments VALUES ('e', now(), '{}')"))
    messages = [message for cell in "ab" for message in world.begin(experiment="e", cell=cell, reuse=True)]
    assert [claim is None for claim in world.ledger.claim(messages)] == [False, True]


def pause_and_cancel(world: World) -> None:
    world.claim()
    pause(world.engine, world.run)
    resume(world.engine, world.run, find_system)
    cancel(world.engine, world.run)
    world.begin()
    pause(world.engine, world.run)
    cancel(world.engine, world.run)
    world.submit()
    cancel(world.engine, world.run)


def take_over(world: World) -> None:
    [reason] = world.ledger.commit([completed(world.claim())])[0]
    [claim] = world.ledger.claim([reason])
    [following] = world.ledger.commit([completed(claim, Failure(type="EmptyGenerationError", message="nothing"))])
    run_to_end(world.ledger, following)
    fork(world.engine, replace(submission(), id="fork", origin=world.run), 2, find_system)


def ask_in_batches(world: World) -> None:
    def batched() -> tuple[Claim, str]:
        claim = world.claim()
        world.ledger.hand_over(claim, "m", "{}")
        with world.engine.begin() as connection:
            key = batches.form(connection, "m", "w", 100, 1000)
        assert key is not None
        return claim, key

    def answer(claim: Claim, key: str) -> None:
        with world.engine.begin() as connection:
            assert batches.deliver(connection, key, [BatchAnswer(f"{key}-{claim.step_id}", 200, "{}")]) == 1

    answer(*batched())
    batched()
    cancel(world.engine, world.run)
    _, key = batched()
    with world.engine.begin() as connection:
        batches.fail(connection, key, BlockedError("no such model"))
    claim, key = batched()
    with world.engine.begin() as connection:
        blocked = "UPDATE questions SET status = 'blocked', reason = '{}', finished_at = now() WHERE id = :id"
        connection.execute(text(blocked), {"id": claim.question_id})
    answer(claim, key)


def prune_runs(world: World) -> None:
    finish(world)
    ended = [world.run]
    claim = world.claim()
    pause(world.engine, world.run)
    world.ledger.commit([completed(claim, FAILURE)])
    ended.append(world.run)
    world.submit()
    cancel(world.engine, world.run)
    assert sum(removed.runs for removed in prune(world.engine, [*ended, world.run])) == 3


def raise_a_budget(world: World) -> None:
    run_to_end(world.ledger, world.begin(3 * LEAST_WINDOW, provenance={BUDGETS: {"run": {"steps": 5}}}))
    end_unbegun(world.engine)
    raised = raise_budget(world.engine, world.run, Budgets(run=Budget(steps=10_000)), find_system)
    assert raised.questions == 3 * LEAST_WINDOW
    cancel(world.engine, world.run)


SCENARIOS = (
    finish,
    fail_and_retry,
    give_back,
    block_and_resume,
    block_some_of_many,
    come_late,
    give_up,
    wait_for_a_twin,
    pause_and_cancel,
    ask_in_batches,
    take_over,
    raise_a_budget,
    prune_runs,
)


def test_every_change_of_state_is_in_the_diagrams_and_every_arrow_is_seen(
    engine: Engine, seen: Callable[[], set[Change]]
) -> None:
    world = World(engine)
    for scenario in SCENARIOS:
        scenario(world)
        assert seen() <= drawn(), f"an arrow is missing that {scenario.__name__} takes"
        assert_states_agree(engine)
    assert drawn() - seen() == set()


def test_every_state_that_there_is_is_in_its_diagram() -> None:
    states: tuple[list[str], ...] = (list(DesiredState), list(QuestionStatus), list(StepState), [*AttemptOutcome, NULL])
    reached = {(column, after) for column, _, after in drawn()}
    assert reached == {
        (column, state) for column, of_column in zip(COLUMNS, states, strict=True) for state in of_column
    }
