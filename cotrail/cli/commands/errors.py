"""`cotrail errors`: the causes of a run's wrong answers."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.progress import track

from cotrail.cli.request_options import Json, RunName, option
from cotrail.cli.terminal.output import Column, console, heading, print_json, print_rows
from cotrail.common.humanize import count, number, percent, percent_range
from cotrail.errors import InputError
from cotrail.services.results import causes
from cotrail.services.results.causes import Cause, CauseCount, CheckedQuestion, LabelAgreement, RunErrors, WrongAnswer


def errors(
    run: RunName,
    *,
    questions: Annotated[bool, option("errors.questions")] = False,
    kinds: Annotated[bool, option("errors.kinds")] = False,
    figure: Annotated[Path | None, option("errors.figure")] = None,
    json: Json = False,
) -> None:
    """Say why a run's wrong answers are wrong, by rules over what is recorded.

    Labels by hand (`cotrail annotate RUN --causes`) stand next to the causes.

    Example: `cotrail errors latest --questions`
    """
    found = causes.show_errors(run, followed)
    if figure:
        _draw(found, figure)
    if json:
        print_json(found)
        return
    _print(console(), found, kinds=kinds, questions=questions)
    if figure:
        console().print(f"Wrote {figure}.", soft_wrap=True)


def followed(checked: Iterable[CheckedQuestion], size: int) -> Iterable[CheckedQuestion]:
    """The same questions; a bar on a terminal moves with each."""
    screen = console(stderr=True)
    return track(checked, "Questions", size, console=screen, transient=True, disable=not screen.is_terminal)


def _draw(found: RunErrors, path: Path) -> None:
    if not found.causes:
        raise InputError("there is no wrong answer to draw; leave --figure out")
    # Imported here, as it brings what draws reports.
    from cotrail.services.results.reports.charts import write_cause_figure

    write_cause_figure(found, path)


def _print(screen: Console, found: RunErrors, *, kinds: bool, questions: bool) -> None:
    outcomes = ", ".join(f"{number:,} {name}" for name, number in found.outcomes.items() if number)
    screen.print(f"{found.run}: {count(found.questions, 'question')}: {outcomes}")
    if not found.causes:
        return
    _print_causes(screen, found.causes)
    for agreement in found.agreements:
        screen.print()
        _print_agreement(screen, agreement)
    if kinds:
        for sort, counts in found.kinds.items():
            screen.print()
            _print_counts(screen, sort, counts)
    if questions:
        screen.print()
        for each in found.wrong:
            _print_question(screen, each)


def _print_causes(screen: Console, causes: Iterable[CauseCount]) -> None:
    columns = (
        Column(title="cause"),
        Column(title="answers", right=True, style="bold"),
        Column(title="share", right=True),
        Column(title="95 % interval", whole=True),
        Column(title="signs", right=True),
    )
    print_rows(screen, columns, [list(_cells(each)) for each in causes])
    screen.print("cause: the first that applies; signs: the wrong answers to which it applies at all", style="dim")


def _cells(each: CauseCount) -> Iterator[str]:
    yield each.cause
    yield f"{each.questions:,}"
    yield percent(each.share)
    yield percent_range(each.interval.low, each.interval.high) if each.interval else ""
    yield f"{each.signs:,}"


def _print_agreement(screen: Console, agreement: LabelAgreement) -> None:
    interval = agreement.interval
    within = f" (95 %: {percent_range(interval.low, interval.high)})" if interval else ""
    kappa = "" if agreement.kappa is None else f", Cohen's kappa {number(agreement.kappa, 2)}"
    screen.print(
        f"{agreement.annotator} labelled {count(agreement.labels, 'answer')}: {agreement.agreed:,} as the rules do, "
        f"{percent(agreement.share)}{within}{kappa}",
        soft_wrap=True,
    )
    _print_counts(screen, "by the rules", agreement.confusion)


def _print_counts(
    screen: Console, title: str, counts: "dict[Cause, dict[Cause, int]] | dict[str, dict[Cause, int]]"
) -> None:
    """A table of counts; its columns are the causes that are named in any row."""
    named = [cause for cause in Cause if any(cause in row for row in counts.values())]
    columns = [Column(title=title), *(Column(title=cause, right=True) for cause in named)]
    rows = [[str(name), *(f"{row.get(cause, 0):,}" for cause in named)] for name, row in counts.items()]
    print_rows(screen, columns, rows)


def _print_question(screen: Console, each: WrongAnswer) -> None:
    screen.print(heading(f"{each.number}  {each.question_id}  {each.cause}"))
    screen.print(f"   {each.facts}", soft_wrap=True)
    for sign in each.signs[1:]:
        screen.print(f"   also {sign.cause}: {sign.facts}", style="dim", soft_wrap=True)
    for label in each.labels:
        note = f": {label.note}" if label.note else ""
        screen.print(f"   {label.annotator} says {label.cause}{note}", soft_wrap=True)
