"""What a person has to mend is met by a few questions of a run and not by all, and costs nothing while it waits."""

import json
import socket
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, select, text

from benchmarks.contenders.cotrail import submission
from cotrail.core.actions.registry import KINDS
from cotrail.core.results import Failure
from cotrail.errors import CorpusChangedError
from cotrail.evaluation.experiments.ircot.protocol import IRCoTExperiment, IRCoTFiles
from cotrail.models.commands.control import being_cancelled, pause, resume
from cotrail.models.commands.submission import open_experiment, submit
from cotrail.models.execution.admission import LEAST_WINDOW, admit, runs_to_close
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import expire_leases, ready_kinds, take_lost, take_suspects, take_unsent
from cotrail.models.queries.progress import read_progress
from cotrail.models.queries.runs import list_runs
from cotrail.models.records.budgets import IN_A_ROW, Blockage, read_blockage, stopped_runs
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.database import connect
from cotrail.models.schema.tables import questions
from cotrail.services.runs.conducting import Conductor, Schedule
from cotrail.systems.registry import find_system
from tests.integration.agreeing_states import assert_states_agree
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import LEASE, STEPS, ask, begin, completed, run_to_end

pytestmark = pytest.mark.usefixtures("verified")

RUN = "costless"
CAUSE = CorpusChangedError("the corpus was indexed again.")
SAID = f"on the host {socket.gethostname()}, {CAUSE}"
FAILURE = Failure(type="IndexBroken", message="no")


def admitted(engine: Engine) -> list[Dispatch]:
    with engine.begin() as connection:
        return admit(connection)


def block(ledger: Ledger, messages: list[Dispatch], cause: Exception = CAUSE) -> None:
    for claim in ledger.claim(messages):
        assert claim is not None
        ledger.block(claim, cause)


def block_until_stopped(engine: Engine, ledger: Ledger) -> int:
    """Blocks whatever is admitted; returns how many questions that were."""
    blocked = 0
    while messages := admitted(engine):
        block(ledger, messages)
        blocked += len(messages)
    return blocked


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    """Of a run that has begun with its first questions."""
    submit(engine, replace(submission(), id=RUN), ask(100), find_system)
    return Ledger(engine, "w", LEASE, find_system)


def test_a_run_that_one_cause_blocks_stops_after_some_questions_and_goes_on_when_that_is_mended(
    engine: Engine, ledger: Ledger, query: Query
) -> None:
    blocked = block_until_stopped(engine, ledger)
    assert IN_A_ROW <= blocked < IN_A_ROW + LEAST_WINDOW
    with engine.connect() as connection:
        assert read_blockage(connection, RUN) == Blockage(questions=blocked, type="CorpusChangedError", message=SAID)
        assert stopped_runs(connection) == {RUN}
    resume(engine, RUN, find_system)
    messages = admitted(engine)
    while messages:
        run_to_end(ledger, messages)
        messages = admitted(engine)
    assert query(select(questions.c.status).distinct()) == [{"status": "finished"}]


def test_a_run_stops_again_where_nothing_was_mended(engine: Engine, ledger: Ledger) -> None:
    for _ in range(2):
        assert block_until_stopped(engine, ledger) < IN_A_ROW + LEAST_WINDOW
        resume(engine, RUN, find_system)


@pytest.mark.parametrize("outcome", [None, FAILURE])
def test_a_question_that_ends_in_between_shows_that_not_all_are_blocked(
    outcome: Failure | None, engine: Engine, ledger: Ledger
) -> None:
    first, *others = admitted(engine)
    block(ledger, others)
    messages = [first]
    while messages:
        messages = [m for ms in ledger.commit([completed(c, outcome) for c in ledger.claim(messages)]) for m in ms]
    assert len(others) + block_until_stopped(engine, ledger) >= len(others) + IN_A_ROW


def test_questions_that_are_blocked_by_different_causes_stop_nothing(engine: Engine, ledger: Ledger) -> None:
    blocked = 0
    while messages := admitted(engine):
        block(ledger, messages[::2])
        block(ledger, messages[1::2], OSError("no such file"))
        blocked += len(messages)
    assert blocked == 100


def test_other_runs_go_on(engine: Engine, ledger: Ledger) -> None:
    block_until_stopped(engine, ledger)
    submit(engine, replace(submission(), id="other"), ask(3), find_system)
    assert run_to_end(ledger, admitted(engine)) == 3 * STEPS


def test_it_is_said_wherever_the_run_is_shown(engine: Engine, ledger: Ledger, cotrail: Cotrail) -> None:
    blocked = block_until_stopped(engine, ledger)
    assert_states_agree(engine)
    line = (
        f"Paused after {blocked} questions were blocked by CorpusChangedError: {SAID} "
        f"Fix it, then `cotrail resume {RUN}` continues."
    )
    watched = cotrail("watch", RUN)
    assert watched.exit_code == 4
    assert watched.stdout.count(line) == 2
    assert line in cotrail("show", RUN).stdout
    assert f"{RUN} is blocked" in cotrail("show", RUN).stdout
    assert " blocked " in cotrail("runs").stdout
    shown = json.loads(cotrail("show", RUN, "--json").stdout)
    assert shown["blockage"] == {"questions": blocked, "type": "CorpusChangedError", "message": SAID}


def test_a_run_is_running_as_long_as_anything_of_it_is_under_way(engine: Engine, ledger: Ledger) -> None:
    first, *others = admitted(engine)
    [claim] = ledger.claim([first])
    block(ledger, others)
    block_until_stopped(engine, ledger)
    with engine.connect() as connection:
        assert read_blockage(connection, RUN) is not None
        assert (read_progress(connection, RUN).state, list_runs(connection)[0].state) == ("running", "running")
    assert_states_agree(engine)
    run_to_end(ledger, ledger.commit([completed(claim)])[0])
    with engine.connect() as connection:
        assert read_blockage(connection, RUN) is None


def test_an_experiment_does_not_wait_for_a_run_that_goes_no_further(engine: Engine, tmp_path: Path) -> None:
    files = IRCoTFiles(corpus="c", demonstrations="prompts", questions="q.jsonl")
    experiment = IRCoTExperiment(name="e", datasets={"hotpotqa": files}, models=("m",))
    open_experiment(engine, "e", {})
    submit(engine, replace(submission(), id=RUN, experiment="e", cell="cell"), ask(100), find_system)
    conductor = Conductor(engine, Schedule(experiment, tmp_path), {}, reuse=False)
    ledger = Ledger(engine, "w", LEASE, find_system)
    for claim in ledger.claim(admitted(engine)):
        assert claim is not None
        assert (conductor.progress().done, conductor.progress().stuck) == (0, ())
        ledger.block(claim, CAUSE)
    block_until_stopped(engine, ledger)
    assert (conductor.progress().done, conductor.progress().stuck) == (1, (RUN,))


def test_a_paused_run_is_paused(engine: Engine, ledger: Ledger) -> None:
    block_until_stopped(engine, ledger)
    pause(engine, RUN)
    with engine.connect() as connection:
        assert (read_progress(connection, RUN).state, list_runs(connection)[0].state) == ("paused", "paused")
    assert_states_agree(engine)


def test_blocked_questions_cost_maintenance_nothing_however_many_they_are(database: str, engine: Engine) -> None:
    maintenance = connect(database, by_index=True)
    ledger = Ledger(engine, "w", LEASE, find_system)
    block(ledger, begin(engine, 20, id="few"))
    few = _rows_read(maintenance)
    block(ledger, begin(engine, 300, id="many"))
    assert _rows_read(maintenance) < few + 50
    maintenance.dispose()


def _rows_read(engine: Engine) -> int:
    """How many rows of questions and steps, or entries of their indexes, maintenance looks at in a sweep."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        # Else it looks at entries of rows as they were before, and by plans for tables without a row.
        connection.execute(text("VACUUM (ANALYZE, INDEX_CLEANUP ON) runs, questions, steps"))
    before = _read(engine)
    with engine.begin() as connection:
        expire_leases(connection)
        ready_kinds(connection, KINDS)
        for kind in KINDS:
            take_lost(connection, kind, 0, 0)
            take_unsent(connection, kind, 1000)
        take_suspects(connection)
        runs_to_close(connection)
        admit(connection)
        being_cancelled(connection)
    return _read(engine) - before


def _read(engine: Engine) -> int:
    rows = "SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_user_tables WHERE relname IN ('questions', 'steps')"
    entries = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN ('questions', 'steps')"
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
    with engine.begin() as connection:
        return int(connection.execute(text(f"SELECT ({rows}) + ({entries})")).scalar_one())
