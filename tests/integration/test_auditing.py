"""`cotrail audit` as a person uses it, and the worked example of its page as an outsider does."""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prov.model import ProvDocument
from sqlalchemy import Engine, text
from typer.testing import CliRunner, Result

from cotrail.audit.bundles import read_bundle
from cotrail.audit.records import write_record
from cotrail.cli.main import app
from cotrail.configuration.settings import settings
from cotrail.errors import CotrailError
from cotrail.models.schema.seals import amending
from tests.integration.recorded import FIRST, OPEN, PARALLEL, PLAIN, SECOND

Cotrail = Callable[..., Result]

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"


@pytest.fixture
def cotrail(store: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cotrail:
    """The command line in this process, on the store and in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    monkeypatch.setenv("COTRAIL_DATABASE_URL", store.url.render_as_string(hide_password=False))
    settings.cache_clear()
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


def digest_of(store: Engine, run: str) -> str:
    with store.connect() as connection:
        return str(connection.execute(text("SELECT digest FROM runs WHERE id = :run"), {"run": run}).scalar_one())


def test_verifying_says_what_was_checked_and_the_digest(store: Engine, cotrail: Cotrail) -> None:
    said = cotrail("audit", "verify", SECOND)
    assert said.exit_code == 0
    assert "2 questions, 14 steps" in said.stdout
    assert "All of it is as it was recorded." in said.stdout
    assert f"digest {digest_of(store, SECOND)}" in said.stdout
    shown = " ".join(cotrail("show", SECOND).stdout.split())
    assert digest_of(store, SECOND) in shown


def test_what_is_not_sealed_yet_is_said(cotrail: Cotrail) -> None:
    said = cotrail("audit", "verify", OPEN)
    assert said.exit_code == 5
    assert "NOT ALL OF IT IS SEALED: 3 questions and 3 steps haven't ended" in said.stdout
    assert "All of it is as it was recorded" not in said.stdout
    assert "digest" not in said.stdout


def test_a_run_sealed_later_is_waited_for(store: Engine, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch) -> None:
    digest, change = digest_of(store, SECOND), text("UPDATE runs SET digest = :digest WHERE id = :run")

    def seal(digest: str | None) -> None:
        with store.begin() as connection:
            amending(connection)
            connection.execute(change, {"digest": digest, "run": SECOND})

    seal(None)
    monkeypatch.setattr("time.sleep", lambda seconds: seal(digest))
    assert cotrail("audit", "verify", SECOND).exit_code == 0


def test_a_digest_that_was_noted_down_is_held_against_the_run(store: Engine, cotrail: Cotrail) -> None:
    noted = digest_of(store, FIRST)
    assert cotrail("audit", "verify", FIRST, "--digest", noted).exit_code == 0
    other = cotrail("audit", "verify", SECOND, "--digest", noted)
    assert other.exit_code == 1
    assert f"{noted} was noted down" in other.stdout


def test_a_change_is_named_and_the_exit_code_says_so(store: Engine, cotrail: Cotrail) -> None:
    change = (
        "UPDATE paragraph_sets SET query = 'x' WHERE rank = 2 AND step_id = (SELECT min(step_id) FROM paragraph_sets)"
    )
    with store.begin() as connection:
        [query] = connection.execute(
            text(change.replace("UPDATE paragraph_sets SET query = 'x'", "SELECT query FROM paragraph_sets"))
        ).scalars()
        amending(connection)
        connection.execute(text(change))
    try:
        said = cotrail("audit", "verify", PLAIN)
        found = json.loads(cotrail("audit", "verify", PLAIN, "--json").stdout)["findings"]
    finally:
        with store.begin() as connection:
            amending(connection)
            connection.execute(text(change.replace("'x'", ":query")), {"query": query})
    assert said.exit_code == 1
    assert f"paragraph_sets: question q0, step 0, rank 2, column query: changed: its step says {query!r}" in said.stdout
    assert [(each["table"], each["rank"]) for each in found] == [("paragraph_sets", 2)]


def test_a_bundle_needs_no_database(cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cotrail("audit", "export", PLAIN).exit_code == 0
    again = cotrail("audit", "export", PLAIN)
    assert again.exit_code != 0
    assert "never overwritten" in str(again.exception)
    monkeypatch.setenv("COTRAIL_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    settings.cache_clear()
    said = cotrail("audit", "verify", f"{PLAIN}.audit.jsonl.zst")
    assert said.exit_code == 0
    assert "All of it is as it was recorded." in said.stdout


def test_a_prompt_is_named_by_its_question_or_by_its_id(store: Engine, cotrail: Cotrail) -> None:
    with store.connect() as connection:
        query = (
            "SELECT steps.id, result->>'prompt_digest' FROM steps JOIN questions ON questions.id = question_id "
            "WHERE steps.run_id = :run AND key = 'q1' AND sequence = 3"
        )
        step, digest = connection.execute(text(query), {"run": FIRST}).one()
    by_question = cotrail("audit", "prompt", FIRST, "q1", 3).stdout_bytes
    assert hashlib.sha256(by_question).hexdigest() == digest
    assert cotrail("audit", "prompt", step).stdout_bytes == by_question
    assert "RUN QUESTION STEP" in str(cotrail("audit", "prompt", FIRST, "q1").exception)


@pytest.mark.parametrize("run", [PLAIN, PARALLEL, SECOND])
def test_a_question_as_prov_json_is_what_another_library_reads(cotrail: Cotrail, run: str) -> None:
    exported = cotrail("audit", "export", run, "--question", "q1", "--format", "prov")
    assert exported.exit_code == 0, exported.exception
    written = exported.stdout
    document: Any = ProvDocument.deserialize(content=written, format="json")
    read = json.loads(document.serialize(format="json"))
    said = json.loads(written)
    assert {part: len(members) for part, members in read.items()} == {part: len(m) for part, m in said.items()}
    assert all(step["prov:startTime"] < step["prov:endTime"] for step in said["activity"].values())
    steps = {each["prov:activity"] for each in said["wasGeneratedBy"].values()}
    assert steps == said["activity"].keys()
    named = {
        end
        for part, each in said.items()
        if part not in ("prefix", "entity", "activity", "agent")
        for ends in each.values()
        for end in ends.values()
    }
    assert named <= said["entity"].keys() | said["activity"].keys() | said["agent"].keys()


def test_the_worked_example_of_the_page_computes_the_digest_of_the_run(
    store: Engine, cotrail: Cotrail, tmp_path: Path
) -> None:
    [script] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "digests.py").write_text(script)
    for run in (PLAIN, PARALLEL, SECOND):
        cotrail("audit", "export", run, "--output", "bundle")
        lines = b"".join(map(write_record, read_bundle(tmp_path / "bundle")))
        (tmp_path / "bundle").unlink()
        done = subprocess.run([sys.executable, "digests.py"], input=lines, capture_output=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stdout.decode().split()[-1] == digest_of(store, run)


@pytest.mark.parametrize("column", ["request", "result"])
@pytest.mark.parametrize("value", ["[]", '"x"', "7", '{"paragraphs": 7}', '{"text": {}}', "[" * 3000 + "]" * 3000])
def test_prompts_and_prov_of_what_can_not_be_read_are_refused(
    store: Engine, cotrail: Cotrail, column: str, value: str
) -> None:
    of_step = (
        f"WHERE run_id = '{FIRST}' AND sequence = 3 AND question_id IN (SELECT id FROM questions WHERE key = 'q1')"
    )
    with store.begin() as connection:
        step, before = connection.execute(text(f"SELECT id, {column}::text FROM steps {of_step}")).one()
    try:
        put(store, step, column, value)
        for arguments in (
            ("prompt", step),
            ("export", FIRST, "--question", "q1", "--format", "prov"),
            ("export", FIRST, "--output", "bundle"),
            ("verify", FIRST),
        ):
            said = cotrail("audit", *arguments)
            assert isinstance(said.exception, SystemExit | CotrailError | None), arguments
            assert said.exit_code == (arguments[0] != "export" or "prov" in arguments), arguments
    finally:
        put(store, step, column, before)


def put(store: Engine, step: int, column: str, value: str) -> None:
    with store.begin() as connection:
        amending(connection)
        statement = text(f"UPDATE steps SET {column} = CAST(:value AS jsonb) WHERE id = :step")
        connection.execute(statement, {"value": value, "step": step})
