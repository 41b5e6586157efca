"""HTML pages from templates; every value is escaped as text.

A page is one file that needs no network. Its content security policy allows no script but its own, by its digest.
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from cotrail.common.printable_text import cut, printable
from cotrail.common.short_digests import shortened
from cotrail.services.views.gold_paragraphs import where
from cotrail.services.views.run_verdicts import verdict_words

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

_TEMPLATES = files("cotrail.services.views.reports").joinpath("templates")

SCRIPT = "page.js"
BRIEF_CHARACTERS = 200
"""Characters of a text in a list."""


def page(template: str, **values: Any) -> str:
    """A template of this package with the values filled in; raises where it uses one that isn't given."""
    return str(_environment().get_template(template).render(values))


def report_style() -> Traversable:
    """The style sheet of the reports, which the viewer's begins with."""
    return _TEMPLATES.joinpath("style.css")


def environment(*loaders: "BaseLoader") -> "Environment":
    """An environment of templates: those of the loaders, then those of this package."""
    # Imported here, as most commands write no page.
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([*loaders, PackageLoader("cotrail.services.views.reports")]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_shown,
    )
    made.filters |= {
        "shortened": shortened,
        "breakable": _breakable,
        "brief": _brief,
        "where": where,
        "verdict": verdict_words,
    }
    return made


@cache
def _environment() -> "Environment":
    from markupsafe import Markup

    made = environment()
    script = _TEMPLATES.joinpath(SCRIPT).read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Not escaped: the script is a file of this package.
    made.globals |= {"frame": "page.html", "script": Markup(script), "script_digest": f"sha256-{digest}"}  # noqa: S704
    return made


def _brief(text: str) -> str:
    """A text in a list, whose details have all of it."""
    return cut(text, BRIEF_CHARACTERS)


def _breakable(text: str) -> Any:
    """A name that may be broken behind its slashes."""
    from markupsafe import Markup

    return Markup("/<wbr>").join(printable(text).split("/"))


def _shown(value: Any) -> Any:
    """Text without control characters, its writing directions isolated; markup stays as it is."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else printable(value)
