"""The list of runs; and a run: how it stands, its questions by how they came out, and what people do with it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, get_args

import msgspec
from msgspec import Meta

from cotrail.common.humanize import count, moment
from cotrail.common.nearest import unknown
from cotrail.common.processes import ending_within
from cotrail.configuration.extensions import VIEWS
from cotrail.errors import CotrailError, InputError, UnknownNameError
from cotrail.services.actor import Scope
from cotrail.services.results import plans, runs, summarizing
from cotrail.services.results.export_formats import export_answers
from cotrail.services.results.plans import planned
from cotrail.services.results.reports.charts import Bars, Measured, counted_causes, lengths
from cotrail.services.results.reports.run_report import Plot
from cotrail.services.results.runs import RUN_STATES, RunOrder
from cotrail.services.results.steps import QuestionStatus
from cotrail.services.results.summarizing import Order, Outcome, QuestionSummaries, Trait
from cotrail.services.runs import control, forking, labels
from cotrail.services.runs.forking import ForkRequest
from cotrail.services.runs.requests import Priority
from cotrail.viewer.page import GoTo, Shown, action, changes, link, page, words
from cotrail.viewer.pages.comparisons import JUDGE

ON_A_PAGE = 50

VIEW_SECONDS = 20.0
"""How long a view of an extension may take."""

Text = Annotated[str, Meta(max_length=200)]
Field = Annotated[str, Meta(max_length=1000)]
Show = Literal["right", "partly", "wrong", "unscored", "failed", "blocked", "open", "cancelled"]

OUTCOMES: Mapping[Outcome, str] = {
    "right": "right",
    "partly": "partly right",
    "wrong": "wrong",
    "unscored": "not scored",
    "failed": "failed",
    "cancelled": "cancelled",
}
STATUSES: Mapping[QuestionStatus, str] = {QuestionStatus.BLOCKED: "blocked", QuestionStatus.OPEN: "not finished"}
TRAITS: Mapping[Trait, str] = {
    "gold-missing": "gold missing",
    "limited": "ended by a limit",
    "retried": "retried",
    "slow": "slow",
    "long": "long",
    "costly": "costly",
}
"""How the sorts of questions are called."""

CAUSES: Mapping[summarizing.CauseName, str] = {name: name.replace("-", " ") for name in get_args(summarizing.CauseName)}


class Choice(NamedTuple):
    """A sort of questions to choose: its name in the address, what it is called, how many there are."""

    name: str
    title: str
    questions: int


@page("/runs/{run}")
def show(
    run: str,
    show: Show | None = None,
    cause: summarizing.CauseName | None = None,
    trait: Sequence[Trait] = (),
    text: Text = "",
    sort: Order = "position",
    after: str | None = None,
) -> Shown:
    """A run, with a page of its questions; show, cause, trait: by which sorts these are chosen."""
    overview = runs.show_overview(run)
    found = summarizing.list_summaries(
        overview.run,
        outcome=[each for each in OUTCOMES if each == show],
        status=[each for each in STATUSES if each == show],
        cause=[cause] if cause else [],
        trait=trait,
        text=text,
        order=sort,
        limit=ON_A_PAGE,
        after=after,
    )
    values = {
        "run": overview,
        "found": found,
        "outcomes": list(_outcomes(found, show)),
        "came_out": came_out(found),
        "by_cause": [Choice(name, title, found.counts.causes.get(name, 0)) for name, title in CAUSES.items()],
        "by_trait": [Choice(name, title, found.counts.traits.get(name, 0)) for name, title in TRAITS.items()],
        "cause_titles": CAUSES,
        "chosen": {"show": show, "cause": cause, "trait": trait, "text": text, "sort": sort, "after": after},
        "plots": list(_plots(found)),
        "causes": counted_causes(found.counts.causes),
        "submitted": moment(overview.created_at),
        "views": VIEWS.values(),
        "priced": found.counts.cost is not None,
    }
    events = link("v1", "runs", overview.run, "events", after=overview.place) if overview.goes_on else ""
    return Shown(template="run.html", section="runs", values=values, events=events)


@page("/runs/{run}/plan")
def plan(run: str) -> Shown:
    """The plan of a run, and where the run departed from it."""
    described = plans.show_plan(run)
    values = {"run": described.run, "plan": described, "planned": list(planned(described))}
    return Shown(template="run-plan.html", section="runs", values=values | {"submitted": moment(described.sealed)})


@page("/runs/{run}/costs")
def costs(run: str) -> Shown:
    """What a run asked for and what it spent, by the kinds of its steps."""
    return Shown(template="run-costs.html", section="runs", values={"run": runs.show_run(run)})


@page("/runs/{run}/views/{view}")
def added(run: str, view: str) -> Shown:
    """What an extension shows of a run; see `RunView`."""
    found, overview = VIEWS.get(view), labels.identify(run)
    if found is None:
        raise UnknownNameError(unknown("view", view, VIEWS))
    try:
        with ending_within(VIEW_SECONDS, TimeoutError):
            html = found.html(map(msgspec.json.decode, export_answers(overview.run)))
        if not isinstance(html, str):
            raise TypeError(f"it returned {type(html).__name__}, and no text")
    except CotrailError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"the view {view} of an extension failed: {type(error).__name__}: {error}") from error
    return Shown(template="run-view.html", section="runs", values={"run": overview, "view": found, "html": html})


def came_out(found: QuestionSummaries) -> Bars | None:
    """How many questions came out in each way, with those that aren't looked at yet; None while all are open."""
    ways = [*_outcomes(found, None), Choice("waiting", "not looked at yet", found.waiting)]
    rows = tuple(
        Measured(name=each.title, size=each.questions, value=f"{each.questions:,}", kind=each.name)
        for each in ways
        if each.questions
    )
    if all(each.kind == QuestionStatus.OPEN for each in rows):
        return None
    title = f"How {count(sum(each.questions for each in ways), 'question')} came out"
    return Bars(title=title, words=", ".join(f"{each.value} {each.name}" for each in rows), rows=rows)


def _outcomes(found: QuestionSummaries, chosen: Show | None) -> Iterator[Choice]:
    """The ways to come out that there are, and the one that is chosen."""
    for outcome, title in OUTCOMES.items():
        if (number := found.counts.outcomes.get(outcome, 0)) or outcome == chosen:
            yield Choice(outcome, title, number)
    for status, title in STATUSES.items():
        if (number := found.statuses[status]) or status == chosen:
            yield Choice(status, title, number)


def _plots(found: QuestionSummaries) -> Iterator[Plot]:
    tight, broad = lengths(found.counts.lengths), lengths(found.counts.lengths, broad=True)
    if len(found.counts.lengths) > 1:
        title = "Questions by the number of their steps"
        yield Plot(title=title, kind="bars", across="steps", tight=tight, broad=broad)


# What people do with a run from its page.

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
def label(run: str, name: Field = "", tags: Field = "") -> GoTo:
    """Name and tag it; tags: all of them, with commas between."""
    former, wanted = runs.show_overview(run).tags, words(tags)
    gone = [each for each in former if each not in wanted]
    return _shown(labels.label_run(run, name=name, add=wanted, remove=gone).run)


@action("/runs/{run}/fork", Scope.SUBMIT)
def fork(run: str, settings: Lines = "", model: Field = "", name: Field = "") -> GoTo:
    """Begin a run that takes over what it recorded; settings: what is changed, a line `key = value` each."""
    changed = changes(settings) | ({"model": model} if model else {})
    return _shown(forking.fork_run(ForkRequest(run=run, changes=changed, name=name or None)).run)


def _shown(run: str) -> GoTo:
    return GoTo(link("runs", run))


AGAIN_SECONDS = 5
"""After how many seconds the list is read again while one of its runs is under way."""

GOING_ON = ("running", "paused")

State = Literal["running", "paused", "blocked", "finished", "cancelled", "pruned"]


@page("/")
def index(
    q: Field = "",
    state: State | None = None,
    system: Field = "",
    model: Field = "",
    dataset: Field = "",
    corpus: Field = "",
    experiment: Field = "",
    tag: Sequence[Field] = (),
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
