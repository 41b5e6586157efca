"""Reports of runs, as pages."""

from collections.abc import Iterator

from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.store import reading
from cotrail.services.views.reports.run_report import run_report


@operation("GET", "/runs/{run}/report", Scope.READ, answers="stream", media_type="text/html; charset=utf-8")
def page(run: str) -> Iterator[bytes]:
    """Give a run as one HTML page: configuration, scores, and the reasoning behind every answer."""
    with reading() as connection:
        document = run_report(connection, run)
    yield document.html.encode()
