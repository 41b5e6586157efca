"""Addresses of pages."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from cotrail.configuration.settings import settings


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
