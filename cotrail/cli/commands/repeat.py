"""`cotrail repeat`: some steps of a run again, and how many come out otherwise."""

from typing import Annotated

import typer
from rich.console import Console

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.terminal.columns import Cell, Column, print_rows
from cotrail.cli.terminal.following import follow
from cotrail.cli.terminal.output import console, print_json
from cotrail.cli.terminal.run_text import INCOMPLETE, summarize
from cotrail.cli.terminal.verdict_tables import shown_interval
from cotrail.common.canonical_json import shortened
from cotrail.common.humanize import count, percent
from cotrail.common.printable_text import cut
from cotrail.core.repeats import SHARE
from cotrail.errors import InputError
from cotrail.services.results import repeated_steps
from cotrail.services.results.repeated_steps import OtherwiseShare, RepeatReport
from cotrail.services.runs.repeating import RepeatedRun, begin_repeating, origin_of, read_share

SHOWN = 20
"""The number of steps that came out otherwise which are shown."""


def repeat(
    run: RunName,
    share: Annotated[
        str | None,
        typer.Option(
            "--share",
            metavar="SHARE",
            help=f"The share of the questions of which a step is repeated, as 5% or 0.05; {SHARE:.0%} by default.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Draws the questions and their steps.")] = 0,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Only steps of this kind are drawn, such as read or retrieve; by default all that language models "
            "carry out. May be repeated.",
            show_default=False,
        ),
    ] = None,
    *,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Show progress until the steps are repeated, and what came out.")
    ] = True,
    json: Json = False,
) -> None:
    """Carry out some steps of a run again, in a run of their own, and print how many come out otherwise.

    Of a run that repeats steps itself, print what came out; nothing is repeated.

    Example: `cotrail repeat latest --share 5%`
    """
    repeating = origin_of(run)
    if repeating.origin is not None:
        if share or kinds:
            raise InputError(f"{repeating.run} repeats steps of {repeating.origin}; name that run to repeat others")
        raise typer.Exit(_report(repeating.run, wait=wait, json=json))
    part = SHARE if share is None else read_share(share)
    begun = begin_repeating(run, share=part, seed=seed, kinds=kinds or ())
    if not wait:
        _print_begun(begun, json=json)
        return
    console(stderr=json).print(_summary(begun), soft_wrap=True)
    raise typer.Exit(_report(begun.run, wait=True, json=json))


def _report(run: str, *, wait: bool, json: bool) -> int:
    """Prints what came out, once the run is done if that is waited for; returns the exit code."""
    code = 0
    if wait:
        progress = follow(run, stderr=json)
        code = (0 if progress.complete else INCOMPLETE) if json else summarize(progress, json=False)
    report = repeated_steps.show_repeats(run)
    if json:
        print_json(report)
    else:
        _print_report(console(), report)
    return code


def _print_begun(begun: RepeatedRun, *, json: bool) -> None:
    if json:
        print_json(begun)
        return
    typer.echo(begun.run)
    hint = f"{_summary(begun)} `cotrail repeat {begun.run}` shows what comes out otherwise."
    console(stderr=True).print(hint, style="dim", soft_wrap=True)


def _summary(begun: RepeatedRun) -> str:
    drawn = f"one each of {begun.steps:,} of {count(begun.questions, 'question')}"
    return f"{begun.run} repeats {count(begun.steps, 'step')} of {begun.origin}, {drawn}."


def _print_report(screen: Console, report: RepeatReport) -> None:
    screen.print()
    columns = [Column(title="step"), Column(title="carried out by"), Column(title="profile")]
    columns += [Column(title=title, right=True) for title in ("repeated", "otherwise", "share")]
    columns.append(Column(title="95 % interval", whole=True))
    rows: list[list[Cell]] = [
        [each.kind, shortened(each.engine), each.profile, *_figures(each.steps)] for each in report.by_engine
    ]
    rows += [["all steps", "", "", *_figures(report.steps)], ["answers", "", "", *_figures(report.answers)]]
    print_rows(screen, columns, rows)
    if left := _left_out(report):
        screen.print(f"Not counted: {left}.", soft_wrap=True)
    for each in report.differing[:SHOWN]:
        screen.print()
        screen.print(f"{each.question}, step {each.step} ({each.kind})", style="bold", soft_wrap=True)
        screen.print(f"  recorded: {cut(each.recorded, 200)}", soft_wrap=True)
        screen.print(f"  again:    {cut(each.again, 200)}", soft_wrap=True)
    if (more := len(report.differing) - SHOWN) > 0:
        screen.print(f"and {count(more, 'further step')}, which --json has too", style="dim")


def _figures(share: OtherwiseShare) -> list[str]:
    return [f"{share.of:,}", f"{share.otherwise:,}", percent(share.share), shown_interval(share.interval)]


def _left_out(report: RepeatReport) -> str:
    """The drawn steps that aren't compared, and why."""
    reasons = {
        "not carried out yet": report.open,
        "without a result": report.failed,
        "asked for otherwise, as the system's code has changed": report.changed,
        "no longer recorded": report.removed,
    }
    return ", ".join(f"{number:,} {why}" for why, number in reasons.items() if number)
