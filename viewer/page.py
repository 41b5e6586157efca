"""A page of the viewer: a function with the route under which it is shown, and what it answers.

Pages call operations (`cotrail.services.operations`), which decide what whoever asks may see and do. The service makes
its routes from these records: a page's parameters stand in its path and its query, those of an action in a form.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from cotrail.services.operations.route import P, Route


class Shown(Struct, frozen=True, kw_only=True):
    """A template of the viewer with its values.

    section: the entry of the navigation that it belongs to; events: the address whose events say that something on the
    page has changed, empty where nothing on it changes by itself; every: after how many seconds it is read again where
    no events tell of it, 0 for never.
    """

    template: str
    values: dict[str, Any]
    section: str = ""
    events: str = ""
    every: int = 0


class GoTo(Struct, frozen=True):
    """Another page, to which the browser goes."""

    address: str


Answer = TypeVar("Answer", Shown, GoTo)

PAGES: dict[str, Route[..., Any]] = {}
"""Pages and actions by their names, as far as their modules are imported (`cotrail.viewer.registry`)."""


def page(path: str) -> Callable[[Callable[P, Shown]], Route[P, Shown]]:
    """Make a page of a function."""

    def make(function: Callable[P, Shown]) -> Route[P, Shown]:
        return _kept(Route(function, "GET", path))

    return make


def action(path: str) -> Callable[[Callable[P, GoTo]], Route[P, GoTo]]:
    """Make an action of a function: what a form on a page does, after which the browser goes to a page."""

    def make(function: Callable[P, GoTo]) -> Route[P, GoTo]:
        return _kept(Route(function, "POST", path))

    return make


def _kept(route: Route[P, Answer]) -> Route[P, Answer]:
    PAGES[f"{route.method} {route.path}"] = route
    return route
