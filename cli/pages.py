"""HTML pages: what is put into one is text, whatever is in it."""

from typing import Any

from cotrail.common.printable_text import printable
from cotrail.common.short_digests import shortened


def page(template: str, **values: Any) -> str:
    """A template of this package, filled in."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("cli"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_shown,
    )
    environment.filters["shortened"] = shortened
    return environment.get_template(template).render(values)


def _shown(value: Any) -> Any:
    """Text without control characters, its directions isolated; what is HTML already stays as it is."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else printable(value)
