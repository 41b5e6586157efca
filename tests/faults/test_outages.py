"""Servers that go away in mid-run and come back: the run waits for them and goes on, and no step is a try the poorer.

And a question that kills whatever executes it: it alone is set aside.
"""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from redis import Redis
from sqlalchemy import Engine, text

from benchmarks.contenders.cotrail import submission
from cotrail.core.questions import Question
from cotrail.engines.language_models.catalogue import find_model, identity
from cotrail.models.commands.submission import submit
from cotrail.models.queries.progress import read_progress
from cotrail.models.schema.database import connect
from cotrail.systems.registry import find_system
from cotrail.tasks.broker_health import broker_problem
from tests.conftest import Eventually
from tests.faults.deadly import DEADLY
from tests.faults.stacked import ROOT, count, finished_steps, open_questions
from tests.faults.working import SLOTS, Workplace, ask, outcomes, statuses
from tests.integration.served import Served, piece, streamed
from tests.integration.test_outages import MODELS

pytestmark = pytest.mark.usefixtures("the_same_processes")

ANSWER = streamed([piece("So the answer is: Brenn."), "[DONE]"])
RUNNING = "SELECT count(*) FROM steps WHERE run_id = :run AND state = 'running'"
UNAVAILABLE = "SELECT count(*) FROM attempts JOIN steps ON id = step_id WHERE run_id = :run AND outcome = 'unavailable'"


@pytest.fixture
def engine(place: Workplace) -> Iterator[Engine]:
    engine = connect(place.settings.database)
    yield engine
    engine.dispose()


def test_a_run_waits_for_its_model_server_and_others_go_on(
    place: Workplace, engine: Engine, eventually: Eventually
) -> None:
    server = Served()
    server.replies = [ANSWER]
    (place.home / "models.toml").write_text(MODELS.format(url=server.url))
    binding = replace(submission().binding, model=identity(find_model(place.home / "models.toml", "served")))
    ask(engine, "served", 300, model_name="served", binding=binding)
    eventually(lambda: finished_steps(engine, "served") > 100, "the run is under way")
    server.close()
    eventually(lambda: count(engine, "served", UNAVAILABLE) > SLOTS, "the server was tried for in vain")
    assert open_questions(engine, "served") > 0, "the run was over before the server went: ask more questions"
    ask(engine, "other", 5)
    eventually(lambda: open_questions(engine, "other") == 0, "the run with another model is finished")
    with engine.connect() as connection:
        [outage] = read_progress(connection, "served").outages
    assert outage.what == "the model server"
    assert "can't be reached" in outage.message
    assert outage.steps > 0
    back = Served(server.port)
    back.replies = [ANSWER]
    eventually(lambda: open_questions(engine, "served") == 0, "the run is finished", 120)
    back.close()
    assert statuses(engine, "served") == statuses(engine, "other") == {"finished"}
    found = outcomes(engine, "served")
    assert found.keys() == {"finished", "unavailable"}
    assert found["unavailable"] < 4 * SLOTS
    with engine.connect() as connection:
        assert read_progress(connection, "served").outages == ()


def test_redis_may_be_away_for_a_while(place: Workplace, engine: Engine, eventually: Eventually) -> None:
    ask(engine, "without redis", 60)
    eventually(lambda: finished_steps(engine, "without redis") > 60, "the run is under way")
    place.kill_server("redis")
    assert broker_problem(place.settings.broker, place.settings.broker_prefix)
    said = "the broker doesn't answer"
    eventually(lambda: said in place.log("maintenance"), "maintenance has noticed")
    eventually(lambda: count(engine, "without redis", RUNNING) == 0, "what was begun is recorded")
    assert open_questions(engine, "without redis") > 0, "the run was over before: ask more questions"
    place.stack.start_servers()
    eventually(lambda: open_questions(engine, "without redis") == 0, "the run is finished", 120)
    assert statuses(engine, "without redis") == {"finished"}
    assert outcomes(engine, "without redis").keys() == {"finished"}


def test_a_redis_that_is_full_is_waited_for(place: Workplace, engine: Engine, eventually: Eventually) -> None:
    socket = place.settings.socket_path / "redis.sock"
    with Redis(unix_socket_path=str(socket)) as server:
        server.config_set("maxmemory", "1")
        ask(engine, "full", 10)
        eventually(lambda: "maxmemory" in place.log("maintenance"), "maintenance has noticed")
        server.config_set("maxmemory", "0")
    eventually(lambda: open_questions(engine, "full") == 0, "the run is finished")
    assert outcomes(engine, "full").keys() == {"finished"}


def test_postgresql_may_be_away_for_a_while_and_watching_goes_on(
    place: Workplace, engine: Engine, eventually: Eventually
) -> None:
    ask(engine, "without postgres", 100)
    command = [sys.executable, "-m", "cotrail.cli.main", "watch", "without postgres"]
    watching = subprocess.Popen(
        command, cwd=ROOT, env=place.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert watching.stdout is not None
    assert "questions" in watching.stdout.readline()
    eventually(lambda: finished_steps(engine, "without postgres") > 100, "the run is under way")
    assert open_questions(engine, "without postgres") > 0, "the run was over before: ask more questions"
    place.kill_server("postgres")
    assert "The database doesn't answer" in watching.stdout.readline()
    said = "the database doesn't answer"
    eventually(lambda: said in place.log("maintenance"), "maintenance has noticed")
    place.stack.start_servers()
    engine.dispose()
    eventually(lambda: open_questions(engine, "without postgres") == 0, "the run is finished", 120)
    printed, _ = watching.communicate(timeout=60)
    assert "100 of 100 questions finished" in printed
    assert watching.returncode == 0
    assert statuses(engine, "without postgres") == {"finished"}
    assert outcomes(engine, "without postgres").keys() <= {"finished", "released"}


def test_a_deadly_question_is_set_aside_alone(place: Workplace, engine: Engine, eventually: Eventually) -> None:
    asked = [Question(id=f"q{n}", text=f"Where was builder {n} born?") for n in range(30)]
    asked[10] = Question(id="q10", text=f"Where was the {DEADLY} builder born?")
    submit(engine, replace(submission(), id="poisoned"), asked, find_system)
    eventually(lambda: open_questions(engine, "poisoned") == 0, "every question has ended", 180)
    query = "SELECT key, status, reason->>'type' FROM questions WHERE run_id = 'poisoned' AND status <> 'finished'"
    with engine.begin() as connection:
        assert [tuple(row) for row in connection.execute(text(query))] == [("q10", "failed", "PoisonedStep")]
    beside = """
        SELECT count(*) FROM (
            SELECT 1 FROM attempts JOIN steps ON id = step_id WHERE run_id = :run AND outcome = 'expired'
            GROUP BY step_id HAVING count(*) > 7
        ) AS often
    """
    # Twice before they are suspects, then at most once for each halving of thirty.
    assert count(engine, "poisoned", beside) == 0
