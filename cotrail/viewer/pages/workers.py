"""Workers and queues, what a diagnosis finds, and audits of the record."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta, Struct

from cotrail.core.actions.registry import KINDS
from cotrail.services import diagnosing
from cotrail.services.actor import Scope
from cotrail.services.results import auditing
from cotrail.services.runs import workers
from cotrail.services.runs.workers import BusyWorker, QueueList, StepUnderWay
from cotrail.viewer.page import Shown, link, page

REFRESHED = 5
"""Seconds after which the page is read again."""

LATE_TIMES, LATE_SECONDS = 5, 30.0
"""A step is late that its worker has held for so many times what one of its kind takes, and for so long at least."""

MOST_HELD = 100
"""Steps of a worker that are listed."""


class WorkerLine(Struct, frozen=True, kw_only=True):
    """A worker in one line; the details are unfolded.

    role, host, process: who it is; per_second: steps lately; held: how many steps it holds.
    oldest: the one that it has held longest, None where it holds none; usual: seconds that one of that kind takes, None
        where none was carried out lately; late: how many of those held are.
    """

    role: str
    host: str
    process: str
    per_second: float
    held: int
    oldest: StepUnderWay | None
    usual: float | None
    late: int
    worker: BusyWorker


@page("/workers")
def index(*, all: bool = False) -> Shown:  # noqa: A002 - as it is in the address
    """What is recorded of workers and queues; all: with the answers of all workers, which takes a few seconds."""
    present = workers.show_workers() if all else None
    queues = workers.show_queues()
    values = {"queues": queues, "lines": tuple(_lines(queues)), "present": present, "most_held": MOST_HELD}
    return Shown(template="workers.html", section="workers", values=values, every=0 if all else REFRESHED)


def _lines(queues: QueueList) -> Iterator[WorkerLine]:
    usual = {each.kind: each.milliseconds / 1000 for each in queues.queues if each.milliseconds is not None}
    for each in queues.workers:
        host, process, _ = each.worker.rsplit(":", 2) if each.worker.count(":") > 1 else (each.worker, "", "")
        kinds = dict.fromkeys([*(step.kind for step in each.holds), *(done.kind for done in each.done)])
        roles = dict.fromkeys(KINDS[kind].role for kind in kinds if kind in KINDS)
        oldest = each.holds[0] if each.holds else None
        yield WorkerLine(
            role=", ".join(roles) or ", ".join(kinds),
            host=host,
            process=process,
            per_second=sum(done.steps for done in each.done) / queues.window_seconds,
            held=len(each.holds),
            oldest=oldest,
            usual=None if oldest is None else usual.get(oldest.kind),
            late=sum(_is_late(step, usual.get(step.kind)) for step in each.holds),
            worker=each,
        )


def _is_late(step: StepUnderWay, usual: float | None) -> bool:
    return usual is not None and step.seconds >= max(LATE_TIMES * usual, LATE_SECONDS)


# The audit trail of a run: what is sealed, whether it verifies, and the bundle for others to check.

Digest = Annotated[str, Meta(max_length=200)]

MOST_VERIFIED = 500
"""The most questions of a run that is verified while somebody waits for the page: some 10 ms each."""

MOST_FINDINGS = 100
"""The most findings that are shown; `cotrail audit verify --json` has all."""


@page("/runs/{run}/audit")
def show(run: str, digest: Digest = "", plan: Digest = "", *, verify: bool = False) -> Shown:
    """The seals of a run; verify: with all digests computed again, and compared with those that were noted down."""
    seals = auditing.show_seals(run)
    small = seals.questions <= MOST_VERIFIED
    found = auditing.verify_run(seals.run, digest=digest or None, plan=plan or None) if verify and small else None
    values = {
        "seals": seals,
        "digest": digest,
        "plan": plan,
        "small": small,
        "most": MOST_VERIFIED,
        "verified": found,
        "findings": found.findings[:MOST_FINDINGS] if found else (),
    }
    is_open = seals.digest is None and found is None
    events = link("v1", "runs", seals.run, "events") if is_open else ""
    return Shown(template="audit.html", section="runs", values=values, events=events)


@page("/diagnosis", Scope.ADMIN)
def show_diagnosis() -> Shown:
    """What is found now; it takes a few seconds."""
    return Shown(template="diagnosis.html", section="workers", values={"diagnosis": diagnosing.diagnose()})
