"""A question that is recorded to be answered at once."""

from msgspec import Struct

from cotrail.models.records.dispatch import Dispatch


class AskedQuestion(Struct, frozen=True, kw_only=True):
    """A question whose messages are still to be sent.

    run: the id of its run; id: that of its row; warnings: what the run lacks, or has another thing for.
    """

    run: str
    id: int
    messages: tuple[Dispatch, ...]
    warnings: tuple[str, ...] = ()
