"""Asking one question: a run of its own, whose steps go ahead of all that is queued."""

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Engine

from cotrail.configuration.corpora import corpora_of
from cotrail.configuration.settings import settings
from cotrail.errors import InputError
from cotrail.models.commands import submission
from cotrail.models.records.dispatch import Dispatch
from cotrail.services.runs.prepared_run import PreparedRun
from cotrail.services.runs.requests import AskRequest
from cotrail.services.runs.submission import prepare
from cotrail.services.runs.system_settings import configure
from cotrail.systems.registry import find_system


class AskedQuestion(Struct, frozen=True, kw_only=True):
    """A question that is recorded, whose messages are still to be sent.

    run: the id of its run; id: that of its row; warnings: what the run lacks, or has another thing for.
    """

    run: str
    id: int
    messages: tuple[Dispatch, ...]
    warnings: tuple[str, ...] = ()


def record(engine: Engine, request: AskRequest) -> AskedQuestion:
    """Checks all that a request names, and records its run; raises InputError and its kinds."""
    prepared = prepare_asked(request)
    [question] = prepared.questions
    row, messages = submission.submit_asked(engine, prepared.submission, question, find_system)
    return AskedQuestion(run=prepared.submission.id, id=row, messages=tuple(messages), warnings=prepared.warnings)


def prepare_asked(request: AskRequest) -> PreparedRun:
    """The run of a question; without a corpus it searches the only one that there is."""
    if request.all_corpora:
        return prepare(request)
    if not configure(find_system(request.system), request).needs.corpus:
        return prepare(request)
    return prepare(replace(request, corpus=_only_corpus()))


def converses(request: AskRequest) -> bool:
    """Whether the system's prompts are conversations, to which a question may bring what was said before it."""
    return "turns" in configure(find_system(request.system), request).needs.capabilities


def _only_corpus() -> str:
    names = sorted(corpora_of(settings()).manifests())
    if not names:
        raise InputError("there is no corpus to search; `cotrail index` makes one, and the system `direct` needs none")
    if len(names) > 1:
        raise InputError(f"there are several corpora; name one as `corpus`: {', '.join(names)}")
    return names[0]
