"""Labels of runs: a name and tags by which people find them. They may change at any time, so no digest covers them."""

from collections.abc import Collection

from msgspec import Struct
from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert

from cotrail.errors import InputError
from cotrail.models.records.projects import in_project
from cotrail.models.schema.tables import run_labels, runs


class Labels(Struct, frozen=True, kw_only=True):
    """A run's name, which other runs may have too, and its tags."""

    name: str | None = None
    tags: tuple[str, ...] = ()


NO_LABELS = Labels()


def save_labels(connection: Connection, run_id: str, labels: Labels) -> None:
    """Replace a run's labels by these."""
    values = {"name": labels.name, "tags": list(labels.tags)}
    row = insert(run_labels).values(run_id=run_id, **values)
    connection.execute(row.on_conflict_do_update(index_elements=[run_labels.c.run_id], set_=values))


def read_labels(connection: Connection, run_ids: Collection[str]) -> dict[str, Labels]:
    """Return the labels of these runs, by id; runs without any are left out."""
    rows = connection.execute(select(run_labels).where(run_labels.c.run_id.in_(run_ids)))
    return {row.run_id: Labels(name=row.name, tags=tuple(row.tags)) for row in rows}


def check_name(connection: Connection, name: str) -> None:
    """Refuse a new name that the beginning of a run's id may be, the run's own among them: others will begin so too."""
    begun = select(runs.c.id).where(runs.c.id.startswith(name, autoescape=True), *in_project(connection, runs))
    if other := connection.execute(begun.order_by(runs.c.created_at.desc()).limit(1)).scalar():
        raise InputError(
            f"{name!r} can't be a run's name, as the id of run {other} {'is' if other == name else 'begins with'} it: "
            "RUN would mean either; choose another name"
        )


def namesakes(connection: Connection, run_id: str, name: str) -> list[str]:
    """Return the ids of the other runs that have this name, so that it finds none of them."""
    named = run_labels.c.name == name, run_labels.c.run_id != run_id
    others = select(run_labels.c.run_id).join(runs, runs.c.id == run_labels.c.run_id)
    others = others.where(*named, *in_project(connection, runs))
    return list(connection.execute(others.order_by(run_labels.c.run_id)).scalars())
