"""The list of runs."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Meta

from cotrail.services.results import runs
from cotrail.services.results.runs import RUN_STATES, RunOrder
from cotrail.viewer.page import Shown, page
from cotrail.viewer.pages.comparisons import JUDGE

ON_A_PAGE = 50
AGAIN_SECONDS = 5
"""After how many seconds the list is read again while one of its runs is under way."""

GOING_ON = ("running", "paused")

Text = Annotated[str, Meta(max_length=1000)]
State = Literal["running", "paused", "blocked", "finished", "cancelled", "pruned"]


@page("/")
def index(
    q: Text = "",
    state: State | None = None,
    system: Text = "",
    model: Text = "",
    dataset: Text = "",
    corpus: Text = "",
    experiment: Text = "",
    tag: Sequence[Text] = (),
    order: RunOrder = "newest",
    after: str | None = None,
) -> Shown:
    """The runs, the newest first; q: texts and filters as `cotrail runs` takes them; the others: filters by a field."""
    named = {"system": system, "model": model, "dataset": dataset, "corpus": corpus, "experiment": experiment}
    chosen = [(name, value) for name, value in named.items() if value] + [("tag", each) for each in tag]
    filters = (*q.split(), *([f"state={state}"] if state else ()), *(f"{name}={value}" for name, value in chosen))
    found = runs.show_runs(filters, limit=ON_A_PAGE, after=after, order=order)
    ids = [each.run for each in found.runs]
    values = {
        "runs": found,
        "standings": {each.run: each for each in runs.show_standings(ids)} if ids else {},
        "q": q,
        "state": state,
        "states": RUN_STATES,
        "chosen": [(name, value, _without(name, value, tag)) for name, value in chosen],
        "order": order,
        "judge": JUDGE,
    }
    goes_on = any(each.state in GOING_ON for each in found.runs)
    return Shown(template="runs.html", section="runs", values=values, every=AGAIN_SECONDS if goes_on else 0)


def _without(name: str, value: str, tags: Sequence[str]) -> Iterator[str] | Sequence[str]:
    """What is left of a filter's values without this one."""
    return [each for each in tags if each != value] if name == "tag" else ()
