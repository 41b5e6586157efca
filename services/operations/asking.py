"""One question, answered while somebody watches."""

from collections.abc import Iterator
from typing import Annotated

from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import HERE, operation
from cotrail.services.runs import asking
from cotrail.services.runs.requests import AskRequest
from cotrail.services.store import open_store
from cotrail.services.views.answering import answering
from cotrail.services.views.ask_events import AnyAskEvent

Keep = Annotated[bool, HERE]
"""Whether the run goes on when nobody listens any more."""


@operation("POST", "/ask", Scope.SUBMIT, answers="events")
def ask(request: AskRequest, *, keep: Keep = False) -> Iterator[AnyAskEvent | None]:
    """Answer one question ahead of all that is queued: tell of its steps as they end, and of what they write.

    Whoever hangs up before the end cancels the run; its record stays. Within a process, None says that nothing has
    happened for a while.
    """
    with open_store() as engine:
        yield from answering(engine, asking.record(engine, request), keep=keep)
