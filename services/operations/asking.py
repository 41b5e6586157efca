"""One question, answered while somebody watches."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta
from sqlalchemy import Engine

from cotrail.services.access.actor import Scope
from cotrail.services.lists.asked_list import AskedPage, read_asked_page
from cotrail.services.operations.operation import HERE, operation
from cotrail.services.runs import asking, control, submission
from cotrail.services.runs.ask_choices import AskChoices, ask_choices
from cotrail.services.runs.asked_question import AskedQuestion
from cotrail.services.runs.named_runs import find_run
from cotrail.services.runs.requests import ASKED_ID, AskRequest
from cotrail.services.runs.requests import make_ask_request as make_ask_request
from cotrail.services.runs.submitted_before import warnings_of
from cotrail.services.store import open_store, reading
from cotrail.services.views import exporting
from cotrail.services.views.answering import answering
from cotrail.services.views.ask_events import AnyAskEvent, Asked, End
from cotrail.services.views.tracing import read_question

Keep = Annotated[bool, HERE]
"""Whether the run goes on when nobody listens any more."""

Limit = Annotated[int, Meta(ge=1, le=1000)]


@operation("POST", "/ask", Scope.SUBMIT, answers="events")
def ask(request: AskRequest, *, keep: Keep = False) -> Iterator[AnyAskEvent | None]:
    """Answer one question ahead of all that is queued: tell of its steps as they end, and of what they write.

    Whoever hangs up before the end cancels the run; its record stays. Within a process, None says that nothing has
    happened for a while.
    """
    with open_store() as engine:
        asked = _recorded(engine, request)

        def give_up() -> None:
            if not keep:
                control.cancel(engine, asked.run, lambda _: None)

        yield from answering(engine, asked, give_up)
        with engine.connect() as connection:
            record, question = find_run(connection, asked.run), read_question(connection, asked.run, ASKED_ID)
        yield End(trace=exporting.trace(record, question).document())


def _begun_before(runs: Sequence[str]) -> Asked:
    with reading() as connection:
        return Asked(run=runs[0], question=ASKED_ID, warnings=warnings_of(find_run(connection, runs[0])))


@operation("POST", "/ask/background", Scope.SUBMIT, status=202, again=_begun_before)
def begin(request: AskRequest) -> Asked:
    """Have a question answered ahead of all that is queued, without waiting for it."""
    # Celery takes half a second to import.
    from cotrail.tasks.routing import send

    with open_store() as engine:
        recorded = _recorded(engine, request)
    send(recorded.messages)
    return Asked(run=recorded.run, question=ASKED_ID, warnings=recorded.warnings)


@operation("GET", "/ask", Scope.READ)
def index(limit: Limit = 20, after: str | None = None) -> AskedPage:
    """List the questions that were asked alone, the newest first; after: the run behind which the page begins."""
    with reading() as connection:
        return read_asked_page(connection, limit, after)


@operation("GET", "/ask/choices", Scope.READ)
def choices() -> AskChoices:
    """Say which systems, corpora and models a question can be asked of."""
    return ask_choices()


def _recorded(engine: Engine, request: AskRequest) -> AskedQuestion:
    return submission.submit_asked(engine, submission.prepare(asking.with_corpus(request)))
