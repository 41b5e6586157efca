"""Every command that only looks at a run, over every run of the odd store."""

from pathlib import Path

import pytest
from sqlalchemy import Engine, select
from typer.testing import CliRunner

from cotrail.cli.lazy_group import COMMANDS
from cotrail.cli.main import app, exit_code
from cotrail.errors import CotrailError
from cotrail.models.schema.tables import runs
from tests.cases import each_case
from tests.integration.odd import store
from tests.integration.odd.claims import false_claims
from tests.integration.test_every_command import ASKED

LOOKING = """
show RUN
watch RUN
score RUN
score RUN --json
trace RUN 1
trace RUN 2 --full
trace RUN 1 --json
trace RUN 1 --prompt 1
replay RUN
plan RUN
errors RUN --questions --kinds
verdicts RUN --questions
export RUN
export RUN --format csv
export RUN --format trec
export RUN --format trec-steps
export RUN --format qrels
export RUN --format chat
export RUN --format inspect --output FILE
report RUN --html FILE
audit verify RUN
audit export RUN --output FILE
audit prompt RUN 1 1
compare RUN found-at-once
compare nothing-published RUN --html FILE
repeat RUN --estimate
rethinking RUN found-at-once
prune RUN --dry-run
label RUN
annotate RUN --export FILE --annotator me
annotate RUN --causes --export FILE --annotator me
judge RUN --estimate
""".strip().splitlines()
"""Commands that change nothing, each as it is typed."""

OTHERWISE = {
    "ask", "budget", "cancel", "doctor", "experiment", "fork", "index", "pause", "prioritize", "resume", "retry",
    "submit", "view",
}  # fmt: skip
"""Those that change what is there, or look at the machine."""

RUNLESS = {
    "corpora", "datasets", "jobs", "knowledge", "mcp", "models", "project", "runs", "sample", "search", "systems",
    "token", "workers",
}  # fmt: skip
"""Those that are about no run, or about all."""

REFUSED = 2
"""The exit code of a command that says what is wrong with what was asked."""


def test_every_command_is_tried_here_or_said_to_be_tried_elsewhere() -> None:
    tried = {line.split()[0] for line in LOOKING}
    asked = {line.split()[0] for line in ASKED.strip().splitlines()}
    assert asked <= tried | OTHERWISE | RUNLESS, asked - tried - OTHERWISE - RUNLESS
    assert tried <= {entry.name for entry in COMMANDS}


OF_SYSTEMS = {"show", "trace", "annotate", "replay", "report"}
"""Commands whose output depends on what systems do: they are tried over a run of each."""


@pytest.mark.usefixtures("here")
@pytest.mark.timeout(900)
@each_case("line", LOOKING)
def test_no_command_fails_or_claims_too_much_of_any_run(line: str, odd: Engine, tmp_path: Path) -> None:
    wrong = []
    with odd.connect() as connection:
        under_way = set(connection.execute(select(runs.c.id).where(runs.c.digest.is_(None))).scalars())
    for run in (*store.STATES, *(store.BY_SYSTEM if line.split()[0] in OF_SYSTEMS else ())):
        if line.startswith("watch") and run in under_way:
            continue  # it waits for them
        words = [{"RUN": run, "FILE": str(tmp_path / f"{run}-{len(line)}")}.get(word, word) for word in line.split()]
        result = CliRunner().invoke(app, words)
        typed = " ".join(words)
        if isinstance(result.exception, CotrailError):
            wrong += [f"{typed}: {result.exception}"] if exit_code(result.exception) != REFUSED else []
        elif result.exception is not None and not isinstance(result.exception, SystemExit):
            wrong.append(f"{typed}: {result.exception!r}")
        elif "--json" not in words and words[0] != "export":
            wrong += [f"{typed}: {each}" for each in false_claims(result.output)]
    assert not wrong, "\n".join(wrong)
