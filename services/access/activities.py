"""Activities: who asked the service to change what. They are kept as long as the store is."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from cotrail.models.commands.activities import record_activities
from cotrail.models.queries.activities import ActivityRecord as ActivityRecord
from cotrail.models.queries.activities import list_activities
from cotrail.models.schema.states import DEFAULT_PROJECT
from cotrail.services.access.actor import Actor, acting, actor
from cotrail.services.access.projects import administers_service
from cotrail.services.store import open_store


class Activity(Struct, frozen=True, kw_only=True):
    """A request that was to change something; see `ActivityRecord`."""

    who: Actor
    operation: str
    subject: str | None
    status: int
    request_id: str

    @property
    def row(self) -> Mapping[str, Any]:
        """It, as it is stored."""
        known = {name: value for name, value in asdict(self).items() if name != "who"}
        project = self.who.project or DEFAULT_PROJECT
        return known | {"actor": self.who.name, "token_id": self.who.token, "project": project}


def record(activities: Sequence[Activity]) -> None:
    """Stores activities."""
    with open_store() as engine, engine.begin() as connection:
        record_activities(connection, [each.row for each in activities])


def list_page(*, limit: int, before: int | None) -> tuple[ActivityRecord, ...]:
    """Activities in the project of the one who asks, the newest first; the service's administrators see all."""
    who = replace(actor(), project=None) if administers_service() else actor()
    with acting(who), open_store() as engine, engine.connect() as connection:
        return tuple(list_activities(connection, limit=limit, before=before))
