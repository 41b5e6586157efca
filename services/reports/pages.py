"""HTML pages from templates; every value is escaped as text."""

from typing import Any

from cotrail.common.printable_text import printable
from cotrail.common.short_digests import shortened


def page(template: str, **values: Any) -> str:
    """A template of this package with the values filled in; raises where it uses one that isn't given."""
    # Imported here, as most commands write no page.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("services.reports"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_shown,
    )
    environment.filters["shortened"] = shortened
    return environment.get_template(template).render(values)


def _shown(value: Any) -> Any:
    """Text without control characters, its writing directions isolated; markup stays as it is."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else printable(value)
