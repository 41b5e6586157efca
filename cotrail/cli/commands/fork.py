"""`cotrail fork`, `repeat` and `replay`: runs that begin from what another one has recorded."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from cotrail.cli.request_options import Json, RunName, Tags, option
from cotrail.cli.terminal.following import follow
from cotrail.cli.terminal.output import INTERVAL, Cell, console, in_json, print_rows, titled
from cotrail.cli.terminal.run_text import INCOMPLETE, print_namesakes, summarize
from cotrail.cli.terminal.verdict_tables import shown_interval
from cotrail.common.humanize import count, percent
from cotrail.common.printable_text import cut
from cotrail.common.structs import assigned, shortened
from cotrail.core.edits import Edit, read_point
from cotrail.core.ports.encoders import ROLES
from cotrail.core.repeats import SHARE
from cotrail.errors import InputError
from cotrail.services.results import repeated_steps
from cotrail.services.results.repeated_steps import OtherwiseShare, RepeatReport
from cotrail.services.runs import forking, labels, repeating
from cotrail.services.runs.forking import ENGINE, ForkedRun, ForkRequest
from cotrail.services.runs.repeating import RepeatedRun, ReplayedRun, begin_repeating, origin_of, read_share


def fork(
    run: RunName,
    at: Annotated[str | None, option("fork.at")] = None,
    changes: Annotated[list[str] | None, option("fork.set")] = None,
    engines: Annotated[list[str] | None, option("fork.engine", words={"roles": ", ".join(ROLES)})] = None,
    keys: Annotated[list[str] | None, option("fork.question")] = None,
    query: Annotated[str | None, option("fork.query")] = None,
    prompt: Annotated[str | None, option("fork.prompt")] = None,
    text: Annotated[str | None, option("fork.text")] = None,
    name: Annotated[str | None, option("fork.name")] = None,
    tags: Tags = None,
    plan: Annotated[str | None, option("fork.plan")] = None,
    *,
    wait: Annotated[bool, option("fork.wait")] = False,
    json: Json = False,
) -> None:
    """Start a new run that takes over recorded steps of another one and computes only what follows.

    With `--query`, `--prompt` or `--text`, one step of one question is edited, and the system continues from there.

    Example: `cotrail fork latest --at read --set reader=cot --wait`
    """
    request = ForkRequest(
        run=run,
        changes=parse_changes([*(changes or ()), *(f"{ENGINE}{each}" for each in engines or ())]),
        at=None if at is None else read_point(at),
        questions=tuple(keys or ()),
        name=name,
        tags=tuple(tags or ()),
        plan=plan,
        edit=None if (text, query, prompt) == (None, None, None) else Edit(text=text, query=query, prompt=prompt),
    )
    forked = forking.fork_run(request)
    if name:
        print_namesakes(name, labels.list_namesakes(forked.run))
    if wait and not json:
        console().print(_summary(forked), soft_wrap=True)
        console().print(f"plan {forked.plan}", soft_wrap=True)
    if wait:
        raise typer.Exit(summarize(follow(forked.run, stderr=json), json=json))
    if in_json(forked, json=json):
        return
    typer.echo(forked.run)
    hint = f"{_summary(forked)} `cotrail watch {forked.run}` shows progress."
    console(stderr=True).print(hint, style="dim", soft_wrap=True)
    console(stderr=True).print(f"plan {forked.plan}", style="dim", soft_wrap=True)


TEXTS = ("model", "profile")
"""Keys whose values are names, in addition to the roles of engines."""


def parse_changes(changes: Iterable[str]) -> dict[str, Any]:
    """Changes from `KEY=VALUE`."""
    # A name may look like a number: the model `135` is no integer.
    changes = tuple(changes)
    keys = {each.partition("=")[0] for each in changes}
    return assigned(changes, texts={key for key in keys if key in TEXTS or key in ROLES or key.startswith(ENGINE)})


def _summary(forked: ForkedRun) -> str:
    took = f"{count(forked.adopted, 'step')} of {count(forked.questions, 'question')} of {forked.origin}"
    return f"{forked.run} takes over {took}{_whole(forked)}."


def _whole(forked: ForkedRun) -> str:
    """Which questions are taken over with their answers, so that nothing is left to do."""
    if forked.whole == forked.questions:
        return ", which are all there are: nothing is computed"
    answered = f"{count(forked.whole, 'question')} with {'its answer' if forked.whole == 1 else 'their answers'}"
    return f", {answered}" if forked.whole else ""


SHOWN = 20
"""The number of steps that came out otherwise which are shown."""


def repeat(
    run: RunName,
    share: Annotated[str | None, option("repeat.share", words={"share": f"{SHARE:.0%}"})] = None,
    seed: Annotated[int, option("repeat.seed")] = 0,
    kinds: Annotated[list[str] | None, option("repeat.kind")] = None,
    *,
    wait: Annotated[bool, option("repeat.wait")] = True,
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
        if not in_json(begun, json=json):
            typer.echo(begun.run)
            hint = f"{_repeat_summary(begun)} `cotrail repeat {begun.run}` shows what comes out otherwise."
            console(stderr=True).print(hint, style="dim", soft_wrap=True)
        return
    console(stderr=json).print(_repeat_summary(begun), soft_wrap=True)
    raise typer.Exit(_report(begun.run, wait=True, json=json))


def _report(run: str, *, wait: bool, json: bool) -> int:
    """Prints what came out, once the run is done if that is waited for; returns the exit code."""
    code = 0
    if wait:
        progress = follow(run, stderr=json)
        code = (0 if progress.complete else INCOMPLETE) if json else summarize(progress, json=False)
    report = repeated_steps.show_repeats(run)
    if not in_json(report, json=json):
        _print_report(console(), report)
    return code


def _repeat_summary(begun: RepeatedRun) -> str:
    drawn = f"one each of {begun.steps:,} of {count(begun.questions, 'question')}"
    return f"{begun.run} repeats {count(begun.steps, 'step')} of {begun.origin}, {drawn}."


def _print_report(screen: Console, report: RepeatReport) -> None:
    screen.print()
    figures = ("repeated", "otherwise", "share")
    columns = titled("step", "carried out by", "profile", *figures, INTERVAL, right=figures, whole=(INTERVAL,))
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


DIVERGED = 1


def replay(run: RunName, *, json: Json = False) -> None:
    """Run the system's code over a run's recorded steps, and report where it diverges.

    Needs no model, no index and no worker, and changes nothing. Exits with 1 where something diverges.
    """
    replayed = repeating.show_replay(run)
    if not in_json(replayed, json=json):
        _show(replayed)
    if replayed.diverged:
        raise typer.Exit(DIVERGED)


def _show(replayed: ReplayedRun) -> None:
    screen = console()
    same = replayed.questions - len(replayed.diverged)
    agree = f"{same} of {count(replayed.questions, 'question')} with {count(replayed.steps, 'step')}"
    screen.print(f"{replayed.run}: {agree} replayed as recorded.", soft_wrap=True)
    for question, steps in replayed.edited.items():
        which = f"{'step' if len(steps) == 1 else 'steps'} {', '.join(map(str, steps))}"
        screen.print(f"question {question}: {which} edited by a person; what came of it is what the system received.")
    if replayed.diverged:
        columns = titled("question", "where the code diverges")
        print_rows(screen, columns, [[each.key, Text(each.divergence)] for each in replayed.diverged])
