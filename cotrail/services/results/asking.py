"""One question, answered while somebody watches."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct
from sqlalchemy import Connection, Engine

from cotrail.configuration.settings import settings
from cotrail.engines.models_file import LANGUAGE_MODEL
from cotrail.models.commands.submission import AskedQuestion
from cotrail.models.queries.listed_questions import list_asked
from cotrail.models.queries.runs import resolve_run
from cotrail.models.queries.traces import read_question
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.actor import Scope
from cotrail.services.library.models import list_models
from cotrail.services.operations.operation import LOCAL_ONLY, operation
from cotrail.services.results import exporting
from cotrail.services.results.answering import AnyAskEvent, Asked, End, answering
from cotrail.services.runs import control, submission
from cotrail.services.runs.labels import find_run
from cotrail.services.runs.requests import ASKED_ID, DEFAULT_SYSTEM, AskRequest
from cotrail.services.runs.resolving import askable_systems, corpus_names, with_corpus
from cotrail.services.runs.submission import warnings_of
from cotrail.services.store import open_store, reading, reading_from
from cotrail.systems.registry import find_system


class AskableSystem(Struct, frozen=True, kw_only=True):
    """A system that answers a single question; searches: whether it searches a corpus."""

    name: str
    title: str
    searches: bool


class AskChoices(Struct, frozen=True, kw_only=True):
    """What there is to ask, and what is taken where nothing is named; models: those whose files are there."""

    systems: tuple[AskableSystem, ...]
    corpora: tuple[str, ...]
    models: tuple[str, ...]
    system: str
    model: str


@operation("asking.choices", "GET", "/ask/choices", Scope.READ)
def ask_choices() -> AskChoices:
    """Say which systems, corpora and models a question can be asked of."""
    return AskChoices(
        systems=tuple(
            AskableSystem(name=name, title=find_system(name).title, searches=searches)
            for name, searches in askable_systems()
        ),
        corpora=tuple(corpus_names()),
        models=tuple(each.name for each in list_models() if each.kind == LANGUAGE_MODEL and each.is_there),
        system=DEFAULT_SYSTEM,
        model=settings().model,
    )


Keep = Annotated[bool, LOCAL_ONLY]
"""Whether the run continues when nobody listens any more."""

Limit = Annotated[int, Meta(ge=1, le=1000)]


@operation("asking.ask", "POST", "/ask", Scope.SUBMIT, answers="events")
def ask(request: AskRequest, *, keep: Keep = False) -> Iterator[AnyAskEvent | None]:
    """Answer one question ahead of all that is queued: tell of its steps as they end, and of what they write.

    A client that hangs up before the end cancels the run; its record stays. Within a process, None says that nothing
    has happened for a while.
    """
    with open_store() as engine:
        asked = _recorded(engine, request)

        def give_up() -> None:
            if not keep:
                control.cancel(engine, asked.run, lambda _: None)

        yield from answering(engine, asked, give_up)
        with reading_from(engine) as connection:
            record, question = find_run(connection, asked.run), read_question(connection, asked.run, ASKED_ID)
        yield End(trace=exporting.trace(record, question).document())


def _asked_before(connection: Connection, runs: Sequence[str]) -> Asked:
    return Asked(run=runs[0], question=ASKED_ID, warnings=warnings_of(find_run(connection, runs[0])))


@operation("asking.begin", "POST", "/ask/background", Scope.SUBMIT, status=202, replayed=_asked_before)
def begin_asking(request: AskRequest) -> Asked:
    """Have a question answered ahead of all that is queued, without waiting for it."""
    # Celery takes half a second to import.
    from cotrail.tasks.routing import send

    with open_store() as engine:
        recorded = _recorded(engine, request)
    send(recorded.messages)
    return Asked(run=recorded.run, question=ASKED_ID, warnings=recorded.warnings)


class ListedAsk(Struct, frozen=True, kw_only=True):
    """A question that was asked alone, as the run of that id; ended_by: what ended it, None where nothing did."""

    run: str
    created_at: datetime
    system: str
    model: str
    corpus: str | None
    question: str
    status: QuestionStatus
    answer: str | None
    ended_by: str | None
    finished_at: datetime | None


class AskedPage(Struct, frozen=True, kw_only=True):
    """Questions, the newest first; after: names the page that follows, None where none does."""

    questions: tuple[ListedAsk, ...]
    after: str | None


def _recorded(engine: Engine, request: AskRequest) -> AskedQuestion:
    return submission.submit_asked(engine, submission.prepare(with_corpus(request)))


@operation("asking.index", "GET", "/ask", Scope.READ)
def show_asked(limit: Limit = 20, after: str | None = None) -> AskedPage:
    """List the questions that were asked alone, the newest first; after: the run behind which the page begins."""
    # Raises UnknownNameError for an `after` that isn't there.
    with reading() as connection:
        behind = None if after is None else resolve_run(connection, after)
        rows = list_asked(connection, limit + 1, behind)
        page = tuple(ListedAsk(**row) for row in rows[:limit])
        return AskedPage(questions=page, after=page[-1].run if len(rows) > limit else None)
