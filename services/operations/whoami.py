"""Who asks, as the service sees it."""

from msgspec import Struct

from cotrail.services.access.actor import Scope, actor
from cotrail.services.operations.operation import operation


class WhoAmI(Struct, frozen=True, kw_only=True):
    """The one who asks.

    name: of the token, or the person; project: the one whose things are seen and made, null for all, as whoever is at
    the machine itself sees them; scopes: what is allowed; person: whether somebody signed in.
    """

    name: str
    project: str | None
    scopes: tuple[Scope, ...]
    person: bool


@operation("GET", "/whoami", Scope.READ)
def show() -> WhoAmI:
    """Say who asks, in which project, and what is allowed."""
    who = actor()
    return WhoAmI(
        name=who.name, project=who.project, scopes=tuple(scope for scope in Scope if who.may(scope)), person=who.person
    )
