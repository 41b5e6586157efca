"""HTML of pages: the viewer's templates, which share parts and style with the reports."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cotrail.common.humanize import count, duration, moment, number, rate, size
from cotrail.core.money import dollars
from cotrail.services.access.tokens import WhoAmI
from cotrail.services.results.reports.pages import environment, report_style
from cotrail.viewer.page import Shown, changed, link
from cotrail.viewer.turns import WORD

if TYPE_CHECKING:
    from jinja2 import Environment


MOST_MARKS = 12
"""How often words are marked in a text: pages stay light."""


def marked(text: str, words: Collection[str]) -> Any:
    """The text as HTML, with these words marked where they come first."""
    from markupsafe import Markup, escape

    if not words:
        return text
    pieces = WORD.split(text)
    places = set(islice((place for place, each in enumerate(pieces) if each in words), MOST_MARKS))
    marking = Markup("<mark>{}</mark>").format
    return Markup("").join(marking(each) if place in places else escape(each) for place, each in enumerate(pieces))


STYLE, SCRIPT, MARK = "viewer.css", "viewer.js", "mark.svg"
"""The names of the one style sheet and the one script of all pages, and of the mark in the browser's tab."""

SECTIONS: Mapping[str, str] = {
    "runs": "Runs",
    "ask": "Ask",
    "corpora": "Corpora",
    "experiments": "Experiments",
    "compare": "Compare",
    "workers": "Workers",
}
"""The navigation: the first part of each section's path, and its title."""


class Here(Struct, frozen=True, kw_only=True):
    """Where a page is shown; path, query: its address; who: the one who looks, None for a page that anybody may see."""

    path: str
    query: Mapping[str, Sequence[str]]
    who: WhoAmI | None = None

    def may(self, scope: str) -> bool:
        """Whether the viewer may do what needs this scope; pages offer only that."""
        return self.who is not None and scope in self.who.scopes

    def with_query(self, **changes: object) -> str:
        """The address of the page with other values in its query."""
        return changed(self.path, self.query, **changes)


def framed(template: str, values: Mapping[str, Any]) -> str:
    """A template as an output of a notebook, in a frame of its own; it has no links, as it is on no page."""
    document = _environment().get_template(template).render(values, here=None)
    return str(_environment().get_template("notebook.html").render(document=document))


def render(shown: Shown, here: Here) -> str:
    """The page as HTML; every value is escaped as text."""
    template = _environment().get_template(shown.template)
    return str(template.render(shown.values, here=here, section=shown.section, events=shown.events, every=shown.every))


@cache
def static(name: str) -> bytes:
    """A file that pages refer to; raises KeyError for another name."""
    return b"\n".join(each.read_bytes() for each in _PARTS[name]())


@cache
def version(name: str) -> str:
    """What tells a file apart from its former versions, which browsers keep."""
    return hashlib.blake2b(static(name), digest_size=6).hexdigest()


def _own(kind: str) -> Iterator[Traversable]:
    """The files of a kind, each of which holds what belongs together, in a fixed order."""
    own = files("cotrail.viewer").joinpath("static").iterdir()
    yield from sorted((each for each in own if each.name.endswith(kind)), key=lambda each: each.name)


_PARTS: Mapping[str, Callable[[], Iterable[Traversable]]] = {
    STYLE: lambda: (report_style(), *_own(".css")),
    SCRIPT: lambda: _own(".js"),
    MARK: lambda: _own(MARK),
}


@cache
def _environment() -> "Environment":
    from jinja2 import PackageLoader
    from markupsafe import Markup

    made = environment(PackageLoader("cotrail.viewer"))
    made.globals |= {"link": link, "version": version, "style": STYLE, "script": SCRIPT, "mark": MARK}
    made.globals |= {"sections": SECTIONS, "frame": "layout.html"}
    made.globals["sheet"] = Markup(static(STYLE).decode())  # noqa: S704 - files of this package
    made.filters |= {"count": count, "duration": duration, "number": number, "rate": rate}
    made.filters |= {"size": size, "marked": marked, "money": dollars, "moment": moment}
    return made
