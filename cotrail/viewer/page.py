"""A page of the viewer: a function with its route, the links between pages, and the texts that forms send.

Pages call operations (`cotrail.services.operations`), which decide what the caller may see and do. The service makes
its routes from these records: a page's parameters stand in its path and its query, those of an action in a form.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct

from cotrail.common.structs import assigned
from cotrail.configuration.settings import settings
from cotrail.core.ports.encoders import ROLES
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
"""Pages and actions by method and path, as far as their modules are imported (`cotrail.api.pages`)."""


def page(path: str, scope: Scope = Scope.READ) -> Callable[[Callable[P, Shown]], Page[P, Shown]]:
    """Make a page of a function."""
    return partial(Page, method="GET", path=path, scope=scope)


def action(path: str, scope: Scope) -> Callable[[Callable[P, Shown | GoTo]], Page[P, Shown | GoTo]]:
    """Make an action of a function: what a form does, after which the browser goes to a page, or shows this one."""
    return partial(Page, method="POST", path=path, scope=scope)


def link(*parts: object, fragment: str = "", **query: object) -> str:
    """The address of a page by the parts of its path, with what of the query isn't empty.

    A slash within a part is encoded, since it belongs to a name.
    """
    path = placed("/" + "/".join(quote(str(part), safe="") for part in parts))
    return path + _query(query) + (f"#{quote(fragment)}" if fragment else "")


def placed(path: str) -> str:
    """The path of the service as browsers see it: a proxy may show it below another one."""
    return settings().api_prefix + path


def changed(address: str, query: Mapping[str, Sequence[str]], **changes: object) -> str:
    """A page's own address with other values in its query; an empty one takes its parameter away."""
    return address + _query({**query, **changes})


def _query(query: Mapping[str, object]) -> str:
    pairs = {name: value for name, value in query.items() if value not in (None, "", (), [])}
    return f"?{urlencode(pairs, doseq=True)}" if pairs else ""


def changes(text: str) -> dict[str, Any]:
    """What a fork changes, from lines `key = value`; raises InputError."""
    pairs = (line.partition("=") for line in lines(text).split("\n") if line.strip())
    return assigned(
        [f"{key.strip()}{equals}{value.strip()}" for key, equals, value in pairs], texts={"model", "profile", *ROLES}
    )


def lines(text: str | None) -> str:
    """A text as a form sends it back, whose browser ends lines in its own way."""
    return (text or "").replace("\r\n", "\n").replace("\r", "\n")


def words(text: str) -> list[str]:
    """What stands between commas, each once."""
    return list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
