"""Activities: who asked the service to change what."""

from typing import Annotated

from msgspec import Meta

from cotrail.services.access import activities
from cotrail.services.access.activities import ActivityRecord
from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import operation

Limit = Annotated[int, Meta(ge=1, le=1000)]
Before = Annotated[int, Meta(ge=1, le=2**53)]


@operation("GET", "/activities", Scope.ADMIN)
def index(limit: Limit = 100, before: Before | None = None) -> tuple[ActivityRecord, ...]:
    """List what was asked for that changes anything, the newest first; before: only what came before this one."""
    return activities.list_page(limit=limit, before=before)
