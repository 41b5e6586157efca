"""A run's state as every place says it."""

from sqlalchemy import Engine, text

from cotrail.models.queries.progress import read_progress
from cotrail.models.queries.runs import RunFilter, list_runs
from cotrail.models.schema.states import RunState


def assert_states_agree(engine: Engine) -> None:
    """SQL, the list of runs, its filters and a run's progress say the same state."""
    with engine.connect() as connection:
        said = {row.id: row.state for row in connection.execute(text("SELECT id, state FROM run_states"))}
        assert {each.run.id: each.state for each in list_runs(connection)} == said
        assert {run: read_progress(connection, run).state for run in said} == said
        for state in RunState:
            chosen = {each.run.id for each in list_runs(connection, [RunFilter("state", state)])}
            assert chosen == {run for run, other in said.items() if other == state}
