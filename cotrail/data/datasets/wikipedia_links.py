"""Titles of Wikipedia's pages from links to them."""

from collections.abc import Iterator
from urllib.parse import parse_qs, unquote, urlsplit

_AROUND = "[](){}<>\"',;"
"""What may stand around a link in a list; a closing parenthesis may be a title's own."""


def titles_of(text: str) -> tuple[str, ...]:
    """The titles of the pages that links in a text lead to, each once and in order; links to elsewhere have none."""
    return tuple(dict.fromkeys(filter(None, map(_title, _links(text)))))


def _links(text: str) -> Iterator[str]:
    """The links in a text: in a list of any form, or with remarks between them."""
    words = text.replace("https://", " https://").replace("http://", " http://").split()
    stripped = (word.lstrip(_AROUND).rstrip(_AROUND.replace(")", "")) for word in words)
    return (word for word in stripped if word.startswith(("https://", "http://")))


def _title(link: str) -> str:
    """The title of the page, without a section of it; empty where the link leads to no page of Wikipedia."""
    try:
        parts = urlsplit(link)
        host = parts.hostname or ""
    except ValueError:  # brackets that are no address
        return ""
    if not host.endswith("wikipedia.org"):
        return ""
    _, mark, name = parts.path.partition("/wiki/")
    name = unquote(name) if mark else next(iter(parse_qs(parts.query).get("title", [])), "")
    title = " ".join(name.replace("_", " ").split())
    return "" if title.startswith("Special:") else title[:1].upper() + title[1:]
