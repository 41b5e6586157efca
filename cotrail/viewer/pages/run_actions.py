"""What people do with a run from its page."""

from typing import Annotated

from msgspec import Meta

from cotrail.services.actor import Scope
from cotrail.services.results import runs
from cotrail.services.runs import control, forking, labels
from cotrail.services.runs.forking import ForkRequest
from cotrail.services.runs.requests import Priority
from cotrail.viewer.forms import changes, words
from cotrail.viewer.links import link
from cotrail.viewer.page import GoTo, Shown, action, page

Text = Annotated[str, Meta(max_length=1000)]
Lines = Annotated[str, Meta(max_length=20_000)]


@action("/runs/{run}/pause", Scope.OPERATE)
def pause(run: str) -> GoTo:
    """Pause the run."""
    return _shown(control.pause_run(run).run)


@action("/runs/{run}/resume", Scope.OPERATE)
def resume(run: str) -> GoTo:
    """Continue it."""
    return _shown(control.resume_run(run).run)


@action("/runs/{run}/retry", Scope.OPERATE)
def retry(run: str) -> GoTo:
    """Try its failed and blocked questions again."""
    return _shown(control.retry_run(run).run)


@page("/runs/{run}/cancel", Scope.OPERATE)
def before_cancelling(run: str) -> Shown:
    """Ask whether the run is to end: nothing continues it."""
    return Shown(template="run-cancel.html", section="runs", values={"run": runs.show_overview(run)})


@action("/runs/{run}/cancel", Scope.OPERATE)
def cancel(run: str) -> GoTo:
    """End it."""
    return _shown(control.cancel_run(run).run)


@action("/runs/{run}/priority", Scope.OPERATE)
def prioritize(run: str, priority: Priority = 0) -> GoTo:
    """Have its questions begun before those of runs with a lower number."""
    return _shown(control.prioritize_run(run, priority).run)


@action("/runs/{run}/labels", Scope.SUBMIT)
def label(run: str, name: Text = "", tags: Text = "") -> GoTo:
    """Name and tag it; tags: all of them, with commas between."""
    former, wanted = runs.show_overview(run).tags, words(tags)
    gone = [each for each in former if each not in wanted]
    return _shown(labels.label_run(run, name=name, add=wanted, remove=gone).run)


@action("/runs/{run}/fork", Scope.SUBMIT)
def fork(run: str, settings: Lines = "", model: Text = "", name: Text = "") -> GoTo:
    """Begin a run that takes over what it recorded; settings: what is changed, a line `key = value` each."""
    changed = changes(settings) | ({"model": model} if model else {})
    return _shown(forking.fork_run(ForkRequest(run=run, changes=changed, name=name or None)).run)


def _shown(run: str) -> GoTo:
    return GoTo(link("runs", run))
