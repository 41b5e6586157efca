"""Runs that were submitted, and what is to be said of them."""

from msgspec import Struct


class SubmittedRun(Struct, frozen=True, kw_only=True):
    """A run that was submitted: the number of its questions, and the digest of its plan."""

    run: str
    questions: int
    plan: str
    name: str | None = None


class Submitted(Struct, frozen=True, kw_only=True):
    """All repeats of a run.

    warnings: what it lacks, or has another thing for; waves: what its batches take, where it is asked in batches.
    namesakes: of each run the others that have its name, so that this finds none of them.
    """

    runs: tuple[SubmittedRun, ...]
    warnings: tuple[str, ...] = ()
    waves: str | None = None
    namesakes: dict[str, tuple[str, ...]] = {}
