"""The list of runs."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from cotrail.services.lists.run_list import RUN_STATES
from cotrail.services.operations import runs
from cotrail.viewer.page import Shown, page

ON_A_PAGE = 50

Text = Annotated[str, Meta(max_length=1000)]


@page("/")
def index(q: Text = "", state: Sequence[str] = (), after: str | None = None) -> Shown:
    """The runs, the newest first; q: filters as `cotrail runs` takes them; state: any of these."""
    filters = (*q.split(), *(f"state={each}" for each in state))
    found = runs.index(filters, limit=ON_A_PAGE, after=after)
    return Shown(template="runs.html", section="runs", values={"runs": found, "q": q, "states": RUN_STATES})
