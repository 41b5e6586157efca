"""Names of runs: the ids, names and tags that they have, by which people find them, and those of their repeats."""

import re
import secrets
from collections.abc import Sequence
from datetime import date

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine

from cotrail.common.printable_text import cut
from cotrail.errors import InputError
from cotrail.models.queries.runs import LATEST, RunRecord, read_run, resolve_run
from cotrail.models.records.runs import NO_LABELS, Labels, check_name, namesakes, read_labels, save_labels
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.store import open_store, reading

_ID = re.compile(r"[\w-]{1,60}-[0-9]{8}-[0-9a-f]{6}")
"""What ids of runs look like: `new_id` makes them."""
_LABEL = re.compile(r"\w[^\x00-\x1f\x7f-\x9f\u2028\u2029]{0,99}")


class LabelledRun(Struct, frozen=True, kw_only=True):
    """A run, its name and its tags."""

    run: str
    name: str | None
    tags: tuple[str, ...]


def labels_of(name: str | None, tags: Sequence[str]) -> Labels:
    """The labels, each tag once; raises InputError for one that can't be a name or a tag."""
    if name is not None:
        _check("name", name)
        if _ID.match(name):
            raise InputError(f"{name!r} can't be a run's name, as it begins like a run's id; choose another name")
    for tag in tags:
        _check("tag", tag)
    return Labels(name=name, tags=tuple(dict.fromkeys(tags)))


def label(
    engine: Engine, run: str, *, name: str | None = None, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> LabelledRun:
    """Changes a run's labels; name: its new one, empty to take the former one away, None to leave it.

    Raises UnknownNameError, and InputError for what can't be a label.
    """
    with engine.begin() as connection:
        run_id = resolve_run(connection, run)
        former = read_labels(connection, [run_id]).get(run_id, NO_LABELS)
        tags = [tag for tag in (*former.tags, *add) if tag not in remove]
        labels = labels_of(name or None, tags)
        if labels.name is not None:
            check_name(connection, labels.name)
        if name is None:
            labels = replace(labels, name=former.name)
        if labels != former:
            save_labels(connection, run_id, labels)
    return LabelledRun(run=run_id, name=labels.name, tags=labels.tags)


@operation("runs.label", "PATCH", "/runs/{run}/labels", Scope.SUBMIT)
def label_run(run: str, *, name: str | None = None, add: Sequence[str] = (), remove: Sequence[str] = ()) -> LabelledRun:
    """Name and tag a run; name: its new one, empty to take the former one away, none to leave it."""
    with open_store() as engine:
        return label(engine, run, name=name, add=add, remove=remove)


@operation("runs.namesakes", "GET", "/runs/{run}/namesakes", Scope.READ)
def list_namesakes(run: str) -> tuple[str, ...]:
    """List the other runs that have a run's name, so that it finds none of them."""
    with reading() as connection:
        run_id = resolve_run(connection, run)
        name = read_labels(connection, [run_id]).get(run_id, NO_LABELS).name
        return tuple(namesakes(connection, run_id, name)) if name else ()


def _check(what: str, text: str) -> None:
    if not _LABEL.fullmatch(text) or text.casefold() == LATEST:
        raise InputError(
            f"{cut(text, 120)!r} can't be a run's {what}: it begins with a letter or digit, has at most 100 characters "
            f"in one line, and isn't `{LATEST}`"
        )


def new_id(system: str, *, asked: bool = False) -> str:
    """An id for a run of this system; asked: whether it is a single question, of which there may be many a second."""
    # Three random bytes tell the runs of one day apart; the primary key refuses the rare collision.
    return f"{system}-{date.today():%Y%m%d}-{secrets.token_hex(8 if asked else 3)}"


def find_run(connection: Connection, run: str) -> RunRecord:
    """The run that a person means; raises UnknownNameError, and InputError where it may be several."""
    return read_run(connection, resolve_run(connection, run))


class FoundRun(Struct, frozen=True, kw_only=True):
    """A run by its id, and the number of its questions."""

    run: str
    questions: int


@operation("runs.find", "GET", "/runs/{run}/id", Scope.READ)
def identify(run: str) -> FoundRun:
    """Find a run by its id, the beginning of it, its name, or `latest`."""
    with reading() as connection:
        record = find_run(connection, run)
        return FoundRun(run=record.id, questions=record.size)
