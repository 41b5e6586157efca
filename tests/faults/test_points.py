"""`kill -9` at named points: what each promise of docs/architecture.md says of a process that dies just there.

One test a point, on one real stack. The process that is meant kills itself when it gets there (`inner.points`),
`cotrail up` brings it back, and then the run must have the very steps of an undisturbed one, with just the attempts
that the point allows. docs/faults.md has the points as a table.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from sqlalchemy import Engine, text

from cotrail.workers.stack.process import alive
from tests.chaos import checks
from tests.chaos.disk import Disk
from tests.chaos.home import Home, made_home
from tests.chaos.model import Mood
from tests.chaos.world import World, signal_all
from tests.conftest import Eventually
from tests.faults import inner
from tests.faults.inner import executions
from tests.faults.inner.points import Point, Points, Reached
from tests.faults.stacked import SAMPLE, Cotrail, count, open_questions, stacked, steps_of

ASKED = 12
"""How many questions a run asks."""

VARIABLES = {
    "COTRAIL_MODEL": "served",
    "COTRAIL_LEASE_SECONDS": "6",  # long enough that no process loses one because the machine is slow
    "COTRAIL_HEARTBEAT_SECONDS": "0.5",
    "COTRAIL_SWEEP_SECONDS": "0.3",
    "COTRAIL_RESEND_SECONDS": "0.6",
}

ONCE, AGAIN = ["finished"], ["expired", "finished"]
"""How the executions of a step end that isn't lost, and of one that is."""

AT_A_WORKER = pytest.mark.slow(group=1)
AT_ANOTHER = pytest.mark.slow(group=2)
"""What dies at the other points loses just what it loses at one of those that are left."""

Submit = Callable[[], str]


@pytest.fixture(scope="module")
def made() -> Iterator[Home]:
    with made_home("cp-") as made:
        yield made


@pytest.fixture(scope="module")
def home(made: Home) -> Path:
    return made.path


@pytest.fixture(scope="module")
def cotrail(made: Home) -> Iterator[Cotrail]:
    with stacked(made.path, VARIABLES | inner.environment()) as run:
        run("index", str(SAMPLE / "corpus.jsonl"), "--name", "sample")
        run("up")
        yield run


@pytest.fixture(scope="module")
def world(made: Home, cotrail: Cotrail) -> Iterator[World]:
    world = World(made, cotrail, Disk(None))
    world.start_model()
    yield world
    world.end()


@pytest.fixture(scope="module")
def submit(world: World) -> Submit:
    questions = world.home.questions(1, ASKED)
    return lambda: world.home.submit(world.cotrail, "ircot", questions)


@pytest.fixture(scope="module")
def undisturbed(engine: Engine, submit: Submit, eventually: Eventually) -> checks.Steps:
    run = submit()
    eventually(lambda: open_questions(engine, run) == 0, "the undisturbed run is finished")
    return checks.by_question(steps_of(engine, run))


@pytest.fixture
def points(home: Path, undisturbed: checks.Steps) -> Iterator[Points]:
    points = Points(inner.folder(home))
    yield points
    points.disarm()


@pytest.fixture
def dies(points: Points, eventually: Eventually) -> Callable[[str], Reached]:
    """Waits until the process has died at the point that is armed."""

    def dies(process: str) -> Reached:
        eventually(lambda: points.reached(process), f"{process} got to the point")
        reached = points.reached(process)
        assert reached is not None
        eventually(lambda: not is_alive(reached.pid), "the process is gone")
        return reached

    return dies


@contextmanager
def frozen(world: World, name: str) -> Iterator[None]:
    """Keeps the processes of a service from their work meanwhile."""
    processes = world.processes(name)
    signal_all(processes, signal.SIGSTOP)
    try:
        yield
    finally:
        signal_all(processes, signal.SIGCONT)


def is_alive(pid: int) -> bool:
    try:
        return alive(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def goes_on(
    world: World, engine: Engine, undisturbed: checks.Steps, eventually: Eventually
) -> Callable[[str, Reached, list[str], int], None]:
    """Brings back what died and holds the finished run against what the point promises.

    outcomes, executed: how the attempts ended of the steps that it was about, and how often each was executed.
    """

    def goes_on(run: str, reached: Reached, outcomes: list[str], executed: int) -> None:
        world.cotrail("up")
        eventually(lambda: open_questions(engine, run) == 0, "the run is finished")
        assert checks.steps_as_undisturbed(engine, run, undisturbed) == []
        done = executions.read(inner.folder(world.home.path) / "executions")
        with engine.begin() as connection:
            assert checks.every_question_finished(connection) == []
            assert checks.each_step_in_effect_once(connection) == []
            assert checks.every_attempt_ended(connection) == []
            assert checks.attempts_account_for_executions(connection, done) == []
        assert reached.steps
        for step in reached.steps:
            assert outcomes_of(engine, step) == outcomes
            assert sum(execution.step_id == step for execution in done) == executed
        assert losers(engine, run) <= {reached.pid}

    return goes_on


def outcomes_of(engine: Engine, step: int) -> list[str]:
    query = text("SELECT outcome FROM attempts WHERE step_id = :step ORDER BY epoch")
    with engine.begin() as connection:
        return list(connection.execute(query, {"step": step}).scalars())


def losers(engine: Engine, run: str) -> set[int]:
    """The processes whose steps were taken away."""
    query = """
        SELECT attempts.worker FROM attempts JOIN steps ON id = step_id WHERE run_id = :run AND outcome = 'expired'
    """
    with engine.begin() as connection:
        return {int(worker.split(":")[1]) for worker in connection.execute(text(query), {"run": run}).scalars()}


@pytest.mark.parametrize(
    ("point", "process", "outcomes", "executed"),
    [
        pytest.param(Point.TAKEN, "generation", ONCE, 1, marks=AT_A_WORKER),
        (Point.CLAIMING, "generation", ONCE, 1),
        pytest.param(Point.CLAIMED, "generation", AGAIN, 1, marks=AT_A_WORKER),
        (Point.SEARCHING, "retrieval", AGAIN, 2),
        pytest.param(Point.GENERATING, "generation", AGAIN, 2, marks=AT_A_WORKER),
        pytest.param(Point.EXECUTED, "generation", AGAIN, 2, marks=AT_A_WORKER),
        (Point.COMMITTING, "generation", AGAIN, 2),
        (Point.COMMITTED, "generation", ONCE, 1),
        pytest.param(Point.SENDING, "generation", ONCE, 1, marks=AT_A_WORKER),
        pytest.param(Point.SENT, "generation", ONCE, 1, marks=AT_A_WORKER),
        pytest.param(Point.ADMITTING, "maintenance", ONCE, 1, marks=AT_ANOTHER),
        (Point.MARKED, "maintenance", ONCE, 1),
        pytest.param(Point.SENDING, "maintenance", ONCE, 1, marks=AT_ANOTHER),
        pytest.param(Point.SENT, "maintenance", ONCE, 1, marks=AT_ANOTHER),
    ],
)
def test_a_process_that_dies_loses_what_the_point_says_and_nothing_else(
    point: Point,
    process: str,
    outcomes: list[str],
    executed: int,
    points: Points,
    submit: Submit,
    dies: Callable[[str], Reached],
    goes_on: Callable[[str, Reached, list[str], int], None],
) -> None:
    points.arm(point, process, passage=1 if process == "maintenance" else 3)
    run = submit()
    goes_on(run, dies(process), outcomes, executed)


@pytest.mark.parametrize(
    ("point", "mood", "outcomes"),
    [
        pytest.param(Point.RETRYING, Mood.FAILING, AGAIN, marks=AT_ANOTHER),
        (Point.RETRIED, Mood.FAILING, ["retried", "finished"]),
        (Point.HOLDING, Mood.BUSY, AGAIN),
        pytest.param(Point.BEATING, Mood.SLOW, AGAIN, marks=AT_ANOTHER),
    ],
)
def test_a_worker_that_dies_while_the_model_is_in_a_mood_goes_on_when_that_is_over(
    point: Point,
    mood: Mood,
    outcomes: list[str],
    world: World,
    points: Points,
    submit: Submit,
    dies: Callable[[str], Reached],
    goes_on: Callable[[str, Reached, list[str], int], None],
) -> None:
    world.be(mood)
    points.arm(point, "generation")
    run = submit()
    reached = dies("generation")
    world.be(Mood.OK)
    goes_on(run, reached, outcomes, 2)


@pytest.mark.parametrize("point", [Point.EXPIRED, pytest.param(Point.EXPIRING, marks=AT_ANOTHER)])
def test_maintenance_that_dies_while_it_takes_steps_back_loses_none(
    point: Point,
    points: Points,
    submit: Submit,
    dies: Callable[[str], Reached],
    goes_on: Callable[[str, Reached, list[str], int], None],
) -> None:
    points.arm(Point.CLAIMED, "generation")
    points.arm(point, "maintenance")
    run = submit()
    lost = dies("generation")
    assert set(lost.steps) <= set(dies("maintenance").steps)
    goes_on(run, lost, AGAIN, 1)


def test_a_submission_that_dies_before_its_end_leaves_nothing(
    points: Points, cotrail: Cotrail, engine: Engine, submit: Submit
) -> None:
    before = [count(engine, "", f"SELECT count(*) FROM {table}") for table in ("runs", "questions", "steps")]
    points.arm(Point.SUBMITTING, "submit")
    with pytest.raises(AssertionError):
        submit()
    assert points.reached("submit")
    after = [count(engine, "", f"SELECT count(*) FROM {table}") for table in ("runs", "questions", "steps")]
    assert after == before


@pytest.mark.parametrize(
    ("point", "command"), [(Point.CANCELLING, "cancel"), pytest.param(Point.RESUMING, "resume", marks=AT_ANOTHER)]
)
def test_a_command_that_dies_before_its_end_changes_nothing(
    point: Point,
    command: str,
    world: World,
    points: Points,
    cotrail: Cotrail,
    engine: Engine,
    submit: Submit,
    undisturbed: checks.Steps,
    eventually: Eventually,
) -> None:
    world.be(Mood.SLOW)  # so that the run isn't over before it is paused
    run = submit()
    cotrail("pause", run)
    statuses = "SELECT count(*) FROM questions WHERE run_id = :run AND status = 'cancelled'"
    points.arm(point, command)
    with pytest.raises(AssertionError):
        cotrail(command, run)
    assert points.reached(command)
    assert count(engine, run, "SELECT count(*) FROM runs WHERE id = :run AND desired_state = 'paused'") == 1
    assert count(engine, run, statuses) == 0
    world.be(Mood.OK)
    cotrail("resume", run)
    eventually(lambda: open_questions(engine, run) == 0, "the run is finished")
    assert checks.steps_as_undisturbed(engine, run, undisturbed) == []


def test_messages_that_come_many_times_are_executed_once(
    world: World, engine: Engine, submit: Submit, undisturbed: checks.Steps, eventually: Eventually
) -> None:
    copied = 0

    def copy() -> bool:
        """Every message that waits is there once more; returns whether most questions had one."""
        nonlocal copied
        with world.redis() as redis:
            queues = [key for key in redis.scan_iter() if redis.type(key) == b"list"]
            waiting = {queue: redis.lrange(queue, 0, -1) for queue in queues}
            # A frozen worker may have asked for one before.
            if sum(map(len, waiting.values())) < ASKED - 2:
                return False
            copied += sum(redis.rpush(queue, *messages) for queue, messages in waiting.items())
        return True

    with frozen(world, "generation"):
        with frozen(world, "retrieval"):
            run = submit()
            eventually(copy, "searches wait")
        eventually(copy, "sentences wait")
    eventually(lambda: open_questions(engine, run) == 0, "the run is finished")
    assert copied >= ASKED
    assert checks.steps_as_undisturbed(engine, run, undisturbed) == []
    attempts = "SELECT count(*) FROM attempts JOIN steps ON id = step_id WHERE run_id = :run"
    assert count(engine, run, attempts) == sum(map(len, undisturbed.values()))
    with world.redis() as redis:
        eventually(lambda: checks.no_message_left(redis) == [], "every queue is empty")
