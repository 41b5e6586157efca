"""A page of the viewer: a function with the route under which it is shown, and what it answers.

Pages call operations (`cotrail.services.operations`), which decide what the caller may see and do. The service makes
its routes from these records: a page's parameters stand in its path and its query, those of an action in a form.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from cotrail.services.actor import Scope
from cotrail.services.operations.operation import Method, P, R, Route


class Shown(Struct, frozen=True, kw_only=True):
    """A template of the viewer with its values.

    section: the entry of the navigation that it belongs to; events: the address whose events say that something on the
    page has changed, empty where nothing on it changes by itself; every: after how many seconds it is read again
    where no events say so, 0 for never.
    """

    template: str
    values: dict[str, Any]
    section: str = ""
    events: str = ""
    every: int = 0


class GoTo(Struct, frozen=True):
    """Another page, to which the browser goes."""

    address: str


class Page(Route[P, R]):
    """A page, or an action; scope: what the viewer has to be allowed, as the operations need that it calls."""

    def __init__(self, function: Callable[P, R], method: Method, path: str, scope: Scope) -> None:
        super().__init__(function, method, path)
        self.scope = scope
        PAGES[f"{method} {path}"] = self


PAGES: dict[str, Page[..., Any]] = {}
"""Pages and actions by method and path, as far as their modules are imported (`cotrail.viewer.registry`)."""


def page(path: str, scope: Scope = Scope.READ) -> Callable[[Callable[P, Shown]], Page[P, Shown]]:
    """Make a page of a function."""

    def make(function: Callable[P, Shown]) -> Page[P, Shown]:
        return Page(function, "GET", path, scope)

    return make


def action(path: str, scope: Scope) -> Callable[[Callable[P, Shown | GoTo]], Page[P, Shown | GoTo]]:
    """Make an action of a function: what a form does, after which the browser goes to a page, or shows this one."""

    def make(function: Callable[P, Shown | GoTo]) -> Page[P, Shown | GoTo]:
        return Page(function, "POST", path, scope)

    return make
