"""Whether the service's host, its servers and the workers are as they have to be."""

from cotrail.services import diagnosing
from cotrail.services.actor import Scope
from cotrail.viewer.page import Shown, page


@page("/diagnosis", Scope.ADMIN)
def show() -> Shown:
    """What is found now; it takes a few seconds."""
    return Shown(template="diagnosis.html", section="workers", values={"diagnosis": diagnosing.diagnose()})
