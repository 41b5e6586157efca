"""Audit trails of runs: verified, and as files for other programs."""

from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from cotrail.audit.bundles import bundle_pieces, read_bundle
from cotrail.audit.findings import Verification
from cotrail.audit.records import Record
from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import HERE, operation
from cotrail.services.store import reading
from cotrail.services.views import auditing
from cotrail.services.views.seals import Seals, read_seals
from cotrail.services.views.step_prompts import StepPrompt, step_prompt

Follow = Annotated[Callable[[Iterable[Record]], Iterable[Record]], HERE]
"""Passes records on as they are read."""


def unseen(records: Iterable[Record]) -> Iterable[Record]:
    """Passes the records on."""
    return records


@operation("GET", "/runs/{run}/seals", Scope.READ)
def seals(run: str) -> Seals:
    """Say what of a run is sealed, by which digests, and since when; nothing is computed again."""
    with reading() as connection:
        return read_seals(connection, run)


@operation("GET", "/runs/{run}/verification", Scope.READ)
def verify(run: str, *, digest: str | None = None, plan: str | None = None, follow: Follow = unseen) -> Verification:
    """Compute all digests of a run again, and name what was changed, removed, added or reordered.

    digest, plan: the run's and its plan's, as they were noted down once.
    """
    with reading() as connection:
        _, records = auditing.trail(connection, run)
        return auditing.verify(follow(records), digest, plan)


@operation("POST", "/bundles/verification", Scope.READ)
def verify_bundle(
    bundle: Path, *, digest: str | None = None, plan: str | None = None, follow: Follow = unseen
) -> Verification:
    """Do the same for a run's bundle; bundle: a file that `audit export` wrote."""
    return auditing.verify(follow(read_bundle(bundle)), digest, plan, bundled=True)


@operation("GET", "/runs/{run}/bundle", Scope.READ, answers="stream", media_type="application/zstd")
def bundle(run: str, follow: Follow = unseen) -> Iterator[bytes]:
    """Give all that is recorded of a run as one file: JSON Lines under Zstandard."""
    with reading() as connection:
        run_id, records = auditing.trail(connection, run)
        yield from bundle_pieces(follow(records), run_id, version("cotrail"))


@operation("GET", "/runs/{run}/questions/{question}/provenance", Scope.READ)
def provenance(run: str, question: str) -> dict[str, Any]:
    """Give a question as W3C PROV-JSON; question: its id, or its number in the run, from 1."""
    with reading() as connection:
        _, document = auditing.question_provenance(connection, run, question)
        return document


@operation("GET", "/steps/{step}/prompt", Scope.READ)
def prompt(step: str) -> StepPrompt:
    """Give the exact prompt of a step, by its id in the table `steps`."""
    with reading() as connection:
        return step_prompt(connection, step)
