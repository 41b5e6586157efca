"""Jobs: queued work that isn't a run's, as people see it and as the code that carries it out; indexing is one."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine

from cotrail import errors
from cotrail.common.structs import common_fields
from cotrail.engines.retrieval.engine import find_engine
from cotrail.errors import ConflictError, CotrailError, InputError
from cotrail.models.commands.administering import cancel_job, queue_job
from cotrail.models.execution.jobs import Held, note_progress
from cotrail.models.queries.experiments import last_finished, list_jobs, read_job
from cotrail.models.queries.runs import tagged
from cotrail.models.records.idempotency import JobFacts, JobRecord, claim_key
from cotrail.models.records.projects import own_project
from cotrail.models.schema.states import OPEN_JOBS as OPEN_JOBS
from cotrail.models.schema.states import JobState
from cotrail.services.access.grants import seen_corpora
from cotrail.services.actor import Scope
from cotrail.services.library.named_files import IndexFiles
from cotrail.services.library.uploaded_files import UploadedPaths, project_folder, reference_of
from cotrail.services.operations.operation import operation
from cotrail.services.runs.control import cancel_run
from cotrail.services.store import open_store, reading, reading_from

R = TypeVar("R")


class JobError(Struct, frozen=True, kw_only=True):
    """Why a job failed; type: the name of the kind of error."""

    type: str
    message: str


class Job(JobFacts, frozen=True, kw_only=True):
    """Queued work that isn't a run's; kind: `index` or `experiment`; name: of what it makes. See `JobFacts`."""

    job: str
    name: str
    error: JobError | None = None

    @property
    def open(self) -> bool:
        """Return whether it hasn't ended."""
        return self.state in OPEN_JOBS

    def outcome(self, of: type[R]) -> R:
        """The result of a job that has ended; raises the error that it failed with, ConflictError if cancelled."""
        if self.error is not None:
            kind = getattr(errors, self.error.type, CotrailError)
            raise (kind if issubclass(kind, CotrailError) else CotrailError)(self.error.message)
        if self.state is not JobState.FINISHED:
            raise ConflictError(f"the job {self.job} is {self.state}")
        return msgspec.convert(self.result, of)


class JobPage(Struct, frozen=True, kw_only=True):
    """Some jobs, the newest first; next: the job behind which the next page begins, if there is one."""

    jobs: tuple[Job, ...]
    next: str | None


def job_of(record: JobRecord) -> Job:
    """A row as people see it: what it was asked for names files of the service, and isn't shown."""
    return Job(
        **common_fields(record, JobFacts),
        job=record.id,
        name=record.request["name"],
        error=None if record.error is None else msgspec.convert(record.error, JobError),
    )


@operation("jobs.cancel", "POST", "/jobs/{job}/cancel", Scope.OPERATE, own=True)
def cancel(job: str) -> Job:
    """Cancel a job that hasn't ended; nothing of it remains."""
    with open_store() as engine:
        with engine.begin() as connection:
            cancelled = job_of(cancel_job(connection, job))
        with reading_from(engine) as connection:
            embedding = tagged(connection, job)
        for run in embedding:
            with suppress(InputError):  # it has ended
                cancel_run(run)
        return cancelled


@operation("jobs.show", "GET", "/jobs/{job}", Scope.READ)
def show_job(job: str) -> Job:
    """Show a job: how far it is, and what it came to."""
    with reading() as connection:
        return job_of(read_job(connection, job))


Limit = Annotated[int, Meta(ge=1, le=1000)]


@operation("jobs.index", "GET", "/jobs", Scope.READ)
def show_jobs(states: Sequence[JobState] = (), limit: Limit = 100, after: str | None = None) -> JobPage:
    """List jobs, the newest first; after: the job behind which the page begins."""
    with reading() as connection:
        jobs = list_jobs(connection, states, limit + 1, after)
    page = tuple(map(job_of, jobs[:limit]))
    return JobPage(jobs=page, next=page[-1].job if len(jobs) > limit else None)


NOTE_SECONDS = 1.0
"""How long progress waits for more of it until it is recorded."""


class LostJobError(Exception):
    """The job was cancelled, or another process has taken it up: nothing of it counts any more."""


class Work:
    """A job under way; held: its id and epoch; request: what is to be done."""

    def __init__(self, engine: Engine, held: Held, request: Mapping[str, Any]) -> None:
        self.engine = engine
        self.request = request
        self.id = held[0]
        self.folder = project_folder() / "jobs" / held[0]
        """A folder of its own, for files of the request at their places; removed in the end."""
        self._held = held
        self._noted_at = 0.0

    def progress(self, done: int, result: Mapping[str, Any] | None = None) -> None:
        """Note how far it is, at most once a second; raises LostJobError."""
        if time.monotonic() - self._noted_at < NOTE_SECONDS:
            return
        self._noted_at = time.monotonic()
        with self.engine.begin() as connection:
            if not note_progress(connection, self._held, done, None if result is None else dict(result)):
                raise LostJobError

    def __enter__(self) -> "Work":
        self._clear()  # what a killed process left
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def _clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


INDEX = "index"


class IndexRequest(IndexFiles, Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request for a corpus: its name, its files and folders, and the engine that is to search it with its settings.

    places: the paths of the files next to each other, from which documents have their ids; their names by default.
    queued: whether evidence workers embed the paragraphs, for an index with a `model`, and not the job itself.
    """

    name: str
    engine: str | None = None
    settings: dict[str, Any] = {}
    queued: bool = False


def model_in(index: Mapping[str, Any]) -> str:
    """The embedder of an index with these settings; raises InputError where it has none, NotInstalledError."""
    find_engine("dense")
    if "late" in index:
        raise InputError("embeddings of tokens (`late`) aren't queued: index without `queued`")
    if isinstance(model := index.get("model"), str):
        return model
    raise InputError("workers embed paragraphs for an index with embeddings: name its model, as `--dense MODEL` does")


def queue_index(connection: Connection, request: IndexRequest) -> JobRecord:
    """Queue a corpus to be made; where the same was made already and is there still, the job that did is returned.

    Raises InputError where the corpus can't have this name, or a file is none that was uploaded.
    """
    if not request.files or len(request.places) != len(request.files):
        raise InputError("a corpus is made of `files`, at least one, and `places` are as many as these")
    if request.engine is not None:
        find_engine(request.engine)
    if request.queued:
        model_in(request.settings)
    corpora = seen_corpora()
    corpora.own_name(request.name)
    stored = replace(request, files=tuple(map(reference_of, request.files)))
    UploadedPaths().expanded(by_place(stored))
    asked = msgspec.json.decode(msgspec.json.encode(stored))  # as the store returns it
    made = last_finished(connection, own_project(connection), INDEX, request.name)
    if made is not None and made.request == asked and made.result is not None:
        there = corpora.manifests().get(request.name)
        if there is not None and there.revision == made.result["revision"]:
            return made
    return queue_job(connection, INDEX, asked)


def by_place(request: IndexRequest) -> dict[str, str]:
    """The files of a request by their places; raises InputError where two have one."""
    files = dict(zip(request.places, request.files, strict=True))
    if len(files) < len(request.files):
        raise InputError("two files of the corpus have one place; give each a path of its own in `places`")
    return files


def queued(queue: Callable[[Connection], JobRecord]) -> Job:
    """Queue a job in a transaction, and once where its request has a key."""
    with open_store() as engine, engine.begin() as connection:
        record = queue(connection)
        claim_key(connection, [record.id])
        return job_of(record)


def queued_before(connection: Connection, jobs: Sequence[str]) -> Job:
    """The job that was queued by the same request before, as it is now."""
    return job_of(read_job(connection, jobs[0]))


@operation("corpora.make", "POST", "/corpora", Scope.SUBMIT, status=202, replayed=queued_before)
def make_corpus(request: IndexRequest) -> Job:
    """Queue a corpus to be made of uploaded files; one of that name is replaced once the new one is complete.

    The same request again makes nothing more.
    """
    return queued(lambda connection: queue_index(connection, request))
