"""The audit trail of runs: its verification, its export, and the exact prompts of steps."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.audit import verification
from cotrail.audit.findings import Finding, Verification
from cotrail.audit.provenance import provenance
from cotrail.audit.records import Record
from cotrail.errors import InputError
from cotrail.models.queries.runs import resolve_run
from cotrail.models.queries.traces import find_question, find_step, rebuild_prompt
from cotrail.models.records.trail import read_trail


class StepPrompt(Struct, frozen=True, kw_only=True):
    """The exact prompt of a step."""

    run: str
    question: str
    step: int
    prompt: str


def trail(connection: Connection, run: str) -> tuple[str, Iterator[Record]]:
    """A run's id, and all that is recorded of it; run: its id, the beginning of it, its name, or `latest`."""
    run_id = resolve_run(connection, run)
    return run_id, read_trail(connection, run_id)


def verify(records: Iterable[Record], digest: str | None = None, *, bundled: bool = False) -> Verification:
    """Computes all digests of a run's records again, and names what was changed, removed, added or reordered.

    digest: the run's, as it was noted down once; bundled: whether the records are those of a file.
    """
    checked = verification.verify(records, bundled=bundled)
    if digest is None or digest.lower() == checked.digest:
        return checked
    noted = Finding(table="runs", what="changed", run=checked.run, column="digest", detail=f"{digest} was noted down")
    return replace(checked, findings=(*checked.findings, noted))


def question_provenance(connection: Connection, run: str, question: str) -> tuple[str, dict[str, Any]]:
    """A run's id, and the PROV-JSON document of one of its questions, given by its key or its number from 1."""
    run_id = resolve_run(connection, run)
    return run_id, provenance(read_trail(connection, run_id, [find_question(connection, run_id, question)]))


def step_prompt(connection: Connection, run: str, question: str | None = None, step: int | None = None) -> StepPrompt:
    """The prompt of a step, which is named by its run, question and number, or by its id in the table `steps` alone.

    Raises InputError where it has no prompt, and CotrailError where the store no longer holds what the model saw.
    """
    if question is not None and step is not None:
        place = resolve_run(connection, run), question, step
    elif question is None and run.isascii() and run.isdigit() and len(run) < 19:
        place = find_step(connection, int(run))
    else:
        raise InputError("a step is named by RUN QUESTION STEP, or by its id alone")
    return StepPrompt(run=place[0], question=place[1], step=place[2], prompt=rebuild_prompt(connection, *place))
