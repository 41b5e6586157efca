"""Jobs: corpora that a server makes of uploaded files, through killed processes, failures and cancellations."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, select

from benchmarks.contenders.cotrail import submission
from cotrail.client.transport import RemoteTransport
from cotrail.core.questions import Question
from cotrail.errors import ConflictError, CorpusError, ForbiddenError, InputError, UnknownNameError
from cotrail.models.commands.submission import submit
from cotrail.models.execution.jobs import MOST_FAILURES, claim_job, finish_job, note_progress, release_job, renew_jobs
from cotrail.models.queries.progress import read_progress
from cotrail.models.schema.service_tables import jobs as jobs_table
from cotrail.models.schema.service_tables import projects
from cotrail.models.schema.states import JobState
from cotrail.services.actor import ALL_SCOPES, Actor, acting
from cotrail.services.library import corpora
from cotrail.services.library.corpora import Indexed
from cotrail.services.operations.operation import through
from cotrail.services.runs import jobs
from cotrail.services.runs.jobs import IndexRequest, Job
from cotrail.services.runs.labels import labels_of
from cotrail.systems.registry import find_system
from cotrail.workers.maintenance import JobRunner
from tests.conftest import wait_until
from tests.integration.conftest import Cotrail
from tests.integration.serving import Server, serving

RUNNER = """
import threading
from cotrail.configuration.settings import settings
from cotrail.models.schema.database import connect
from cotrail.workers.maintenance import JobRunner
runner = JobRunner(connect(settings().database), lease=2, pause=0.1)
runner.start()
threading.Event().wait()
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, database: str) -> Iterator[tuple[Path, Server]]:
    """A server with its home."""
    folder = tmp_path_factory.mktemp("jobs")
    own = {"COTRAIL_HOME": str(folder / "home"), "COTRAIL_DATABASE_URL": database.replace("+psycopg", "")}
    with serving(os.environ | own, folder / "log") as server:
        yield folder / "home", server


@pytest.fixture
def home(served: tuple[Path, Server], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The server's home, in which there is nothing at first."""
    path, _ = served
    monkeypatch.setenv("COTRAIL_HOME", str(path))
    yield path
    for folder in path.glob("*/"):
        shutil.rmtree(folder)


@pytest.fixture
def server(home: Path, cotrail: Cotrail, served: tuple[Path, Server]) -> Server:
    return served[1]


@pytest.fixture
def door(server: Server) -> Iterator[RemoteTransport]:
    door = RemoteTransport(server.url)
    with through(door):
        yield door
    door.close()


@pytest.fixture
def runner(engine: Engine, cotrail: Cotrail) -> Iterator[JobRunner]:
    runner = JobRunner(engine, lease=10, pause=0.1)
    runner.start()
    yield runner
    runner.stop()


def corpus_file(folder: Path, paragraphs: int, name: str = "corpus.jsonl") -> Path:
    lines = (
        f'{{"id": "{number}", "title": "Title {number}", "text": "The river {number} flows through {number % 97}."}}\n'
        for number in range(paragraphs)
    )
    path = folder / name
    path.write_text("".join(lines))
    return path


def make(name: str, *files: Path, **further: Any) -> Job:
    return jobs.make_corpus(IndexRequest(name=name, files=tuple(map(str, files)), **further))


def ended(job: Job) -> Job:
    wait_until(lambda: not jobs.show_job(job.job).open, f"{job.job} has ended")
    return jobs.show_job(job.job)


def test_the_command_line_indexes_on_a_server_as_it_does_here(
    server: Server, runner: JobRunner, cotrail: Cotrail, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    (notes / "below").mkdir(parents=True)
    (notes / "below" / "a.md").write_text("# A\n\nA river flows through Selby.\n")
    (notes / "b.txt").write_text("Curitiba is a city.\n")
    (notes / "picture.png").write_bytes(b"\x89PNG")
    file = corpus_file(tmp_path, 100)
    for name, paths in {"notes": [notes], "files": [notes / "b.txt", file]}.items():
        here = cotrail("index", *paths, "--name", f"{name}-here")
        there = cotrail("--server", server.url, "index", *paths, "--name", f"{name}-there")
        assert (here.exit_code, there.exit_code) == (0, 0), there.output
        assert revisions_and_counts(here.output) == revisions_and_counts(there.output)
    as_json = [
        json.loads(cotrail(*where, "index", notes, "--name", "notes", "--json").output)
        for where in ([], ["--server", server.url])
    ]
    assert {**as_json[0], "seconds": 0} == {**as_json[1], "seconds": 0}
    assert as_json[0]["left_out"] == 1
    missing = cotrail("--server", server.url, "index", tmp_path / "none.jsonl", "--name", "x")
    assert "check the path" in str(missing.exception)


def revisions_and_counts(output: str) -> list[str]:
    """The output without the corpus's name and the time that it took."""
    first, *rest = output.splitlines()
    return [first.partition(" as ")[0], *rest]


def test_a_bad_file_fails_the_job_as_it_fails_the_command(
    server: Server, runner: JobRunner, cotrail: Cotrail, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "1", "title": "T", "text": "x"}\n{"id": "2"}\n')
    here = cotrail("index", bad, "--name", "bad")
    there = cotrail("--server", server.url, "index", bad, "--name", "bad")
    assert type(here.exception) is type(there.exception) is CorpusError
    assert str(here.exception).replace(f"{tmp_path}/", "") == str(there.exception)
    [failed] = jobs.show_jobs().jobs
    assert (failed.state, failed.error and failed.error.type) == (JobState.FAILED, "CorpusError")
    with pytest.raises(CorpusError):
        failed.outcome(Indexed)


def test_the_same_request_again_makes_nothing_more(
    engine: Engine, door: RemoteTransport, runner: JobRunner, tmp_path: Path
) -> None:
    file = corpus_file(tmp_path, 50)
    first = make("mine", file)
    assert ended(first).state is JobState.FINISHED
    assert make("mine", file).job == first.job
    other = make("mine", corpus_file(tmp_path, 51))
    assert other.job != first.job
    ended(other)
    assert ended(make("mine", corpus_file(tmp_path, 50))).job not in (first.job, other.job)


def test_of_a_name_one_job_at_a_time_is_open(door: RemoteTransport, tmp_path: Path) -> None:
    file = corpus_file(tmp_path, 50)
    first = make("mine", file)
    assert make("mine", file).job == first.job
    with pytest.raises(ConflictError, match="from something else"):
        make("mine", corpus_file(tmp_path, 51))
    assert jobs.cancel(first.job).state is JobState.CANCELLED
    with pytest.raises(ConflictError, match="has ended already"):
        jobs.cancel(first.job)
    assert make("mine", file).job != first.job


def test_files_that_would_stand_in_each_others_places_are_refused(door: RemoteTransport, tmp_path: Path) -> None:
    files = corpus_file(tmp_path, 1, "a.jsonl"), corpus_file(tmp_path, 2, "b.jsonl")
    with pytest.raises(InputError, match="have one place"):
        make("mine", *files, places=("a", "a"))
    with pytest.raises(InputError, match="a file and a folder"):
        make("mine", *files, places=("a", "a/b"))


def test_bounds_of_a_page_are_checked(server: Server) -> None:
    assert [httpx2.get(f"{server.url}/v1/jobs", params={"limit": each}).status_code for each in (0, 1001, 1)] == [
        422,
        422,
        200,
    ]


def test_a_killed_processes_job_is_taken_up_by_another(engine: Engine, door: RemoteTransport, tmp_path: Path) -> None:
    job = make("large", corpus_file(tmp_path, 200_000))
    first = subprocess.Popen([sys.executable, "-c", RUNNER])
    try:
        wait_until(lambda: jobs.show_job(job.job).progress > 0, "the job is in its middle")
    finally:
        first.kill()
        first.wait()
    assert jobs.show_job(job.job).state is JobState.RUNNING
    second = subprocess.Popen([sys.executable, "-c", RUNNER])
    try:
        finished = ended(job)
    finally:
        second.send_signal(signal.SIGKILL)
        second.wait()
    assert finished.outcome(Indexed).paragraphs == 200_000
    with engine.connect() as connection:
        row = connection.execute(select(jobs_table.c.epoch, jobs_table.c.failures)).one()
    assert row.epoch == 2
    found = corpora.search_corpus("large", "river 1234", 3)
    assert found.paragraphs[0].id == "1234"


def test_cancelling_ends_the_process_and_leaves_nothing(
    engine: Engine, door: RemoteTransport, runner: JobRunner, tmp_path: Path, home: Path
) -> None:
    job = make("large", corpus_file(tmp_path, 200_000))
    wait_until(lambda: jobs.show_job(job.job).progress > 0, "the job is in its middle")
    jobs.cancel(job.job)
    wait_until(lambda: not runner._processes, "its process has ended")
    assert jobs.show_job(job.job).state is JobState.CANCELLED
    with pytest.raises(UnknownNameError):
        corpora.describe_corpus("large")


@pytest.fixture
def queued(engine: Engine) -> Callable[[], str]:
    def queue() -> str:
        row = {"id": "index-1", "project": "default", "kind": "index", "request": {"name": "mine"}}
        with engine.begin() as connection:
            connection.execute(jobs_table.insert().values(row))
        return "index-1"

    return queue


def test_who_lost_a_job_changes_nothing_of_it(engine: Engine, queued: Callable[[], str]) -> None:
    job = queued()
    with engine.begin() as connection:
        assert claim_job(connection, ["index"], "a", 0) is not None
    with engine.begin() as connection:
        second = claim_job(connection, ["index"], "b", 60)
        assert second is not None
        assert (second.epoch, second.failures) == (2, 1)
        assert claim_job(connection, ["index"], "c", 60) is None
        assert not note_progress(connection, (job, 1), 10)
        assert not finish_job(connection, (job, 1), {})
        assert renew_jobs(connection, [(job, 1), (job, 2)], 60) == {(job, 2)}
        assert note_progress(connection, (job, 2), 10)
        assert finish_job(connection, (job, 2), {"done": True})


def test_a_job_that_ends_its_processes_again_and_again_fails(engine: Engine, queued: Callable[[], str]) -> None:
    job = queued()
    for number in range(MOST_FAILURES):
        with engine.begin() as connection:
            claimed = claim_job(connection, ["index"], "a", 60)
            assert claimed is not None
            note_progress(connection, (job, claimed.epoch), 7)  # as far as before, and no further
            assert release_job(connection, (job, claimed.epoch), pause=-1, failed=True), number
    with engine.begin() as connection:
        assert claim_job(connection, ["index"], "a", 60) is None
        row = connection.execute(select(jobs_table.c.state, jobs_table.c.error)).one()
    assert (row.state, "without a result" in row.error["message"]) == ("failed", True)


def test_projects_see_their_own_corpora_and_what_is_granted(
    engine: Engine, runner: JobRunner, home: Path, cotrail: Cotrail, tmp_path: Path
) -> None:
    from cotrail.services.library.corpora import describe_corpus, index, list_corpora, remove_corpus

    with engine.begin() as connection:
        connection.execute(
            projects.insert(),
            [{"name": "a", "corpora": None}, {"name": "b", "corpora": ["a~mine"]}, {"name": "c", "corpora": []}],
        )

    def names(project: str) -> list[str]:
        with acting(Actor(name=project, project=project, scopes=ALL_SCOPES)):
            return [each.corpus for each in list_corpora()]

    index([corpus_file(tmp_path, 10)], "shared")
    with acting(Actor(name="a", project="a", scopes=ALL_SCOPES)):
        index([corpus_file(tmp_path, 20)], "mine")
        index([corpus_file(tmp_path, 30)], "shared")
        assert describe_corpus("shared").paragraphs == 30
    assert [each.corpus for each in list_corpora()] == ["a~mine", "a~shared", "shared"]
    assert (names("a"), names("b"), names("c"), names("default")) == (["mine", "shared"], ["a~mine"], [], ["shared"])
    with acting(Actor(name="b", project="b", scopes=ALL_SCOPES)):
        assert describe_corpus("a~mine").paragraphs == 20
        with pytest.raises(ForbiddenError):
            remove_corpus("a~mine")
        for name in ("shared", "a~shared", "mine"):
            with pytest.raises(UnknownNameError, match=f"corpus '{name}'"):
                describe_corpus(name)


@pytest.mark.usefixtures("cotrail")
def test_a_cancelled_job_takes_its_runs_along(engine: Engine) -> None:
    with engine.begin() as connection:
        row = {"id": "job-000001", "project": "default", "kind": "index", "request": {"name": "mine"}}
        connection.execute(jobs_table.insert().values(row))
    for run, tags in (("its", ("job-000001",)), ("other", ("job-000002",))):
        labels = labels_of(None, tags)
        submit(engine, replace(submission(), id=run, labels=labels), [Question(id="q", text="Who?")], find_system)
    assert jobs.cancel("job-000001").state == "cancelled"
    with engine.connect() as connection:
        assert [read_progress(connection, run).state for run in ("its", "other")] == ["cancelled", "running"]
