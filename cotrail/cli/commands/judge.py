"""`cotrail judge` and `cotrail verdicts`: language models grade the answers of a run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cotrail.cli.request_options import Json, RunName, Tags, completing, limits_in, option
from cotrail.cli.terminal import verdict_tables
from cotrail.cli.terminal.following import follow
from cotrail.cli.terminal.output import console, in_json, print_json
from cotrail.cli.terminal.run_text import INCOMPLETE, celery_app, print_estimate, print_warnings, summarize
from cotrail.common.humanize import count
from cotrail.errors import InputError
from cotrail.services.results import judges
from cotrail.services.results import verdicts as operations
from cotrail.services.results.verdicts import MEANS, RunVerdicts
from cotrail.services.runs import judging
from cotrail.services.runs.judging import BegunJudge, JudgeRequest, SubmittedJudge
from cotrail.services.runs.progress import RunProgress


def _rubrics() -> tuple[str, ...]:
    from cotrail.systems.judge.rubric import RUBRICS

    return tuple(RUBRICS)


def judge(
    run: RunName,
    models: Annotated[list[str] | None, option("judge.model")] = None,
    rubric: Annotated[str, option("judge.rubric", autocompletion=completing(_rubrics))] = "correct",
    against: Annotated[str | None, option("judge.against")] = None,
    limit: Annotated[int | None, option("judge.limit")] = None,
    profile: Annotated[str | None, option("judge.profile")] = None,
    serving: Annotated[str | None, option("judge.serving")] = None,
    budget: Annotated[list[str] | None, option("judge.run-budget")] = None,
    name: Annotated[str | None, option("judge.name")] = None,
    tags: Tags = None,
    *,
    estimate: Annotated[bool, option("judge.estimate")] = False,
    wait: Annotated[bool, option("judge.wait")] = False,
    labels: Annotated[Path | None, option("judge.calibrate")] = None,
    json: Json = False,
) -> None:
    """Have language models grade the answers of a run that has ended, by a rubric.

    Each judge is a run of its own next to the judged one, whose record stays as it is. `cotrail verdicts` shows what
    they said.

    Example: `cotrail judge latest --model qwen --rubric simpleqa --wait`
    """
    if labels is not None and not models:
        _calibrate(run, labels, json=json)
        return
    if name is not None and len(models or ()) > 1:
        raise InputError("--name names one run, and each model judges in its own: name them later by `cotrail label`")
    given = {
        "profile": profile,
        "serving": serving,
        "run_budget": limits_in("run_budget", budget or ()) or None,
        "name": name,
        "tags": tags,
    }
    others = {field: value for field, value in given.items() if value is not None}
    request = JudgeRequest(run=run, rubric=rubric, against=against, limit=limit, others=others)
    if estimate:
        estimates = judging.estimate(request, models=models or (), labels=labels)
        if not in_json(estimates, json=json):
            for each in estimates:
                print_estimate(each, json=False)
    else:
        _submit(
            judging.begin(request, models=models or (), labels=labels, app=celery_app), labels, wait=wait, json=json
        )


def _submit(begun: tuple[BegunJudge, ...], labels: Path | None, *, wait: bool, json: bool) -> None:
    """Says what was submitted, and follows it; labels: those that the judges are compared with."""
    for each in begun:
        print_warnings(each.submitted)
    judges = [each.judge for each in begun]
    if not wait and labels is None:
        _print_submitted(judges, json=json)
        return
    ended = _follow_each(judges, json=json)
    if labels is not None:
        _calibrate(judges[0].judged[0], labels, json=json)
    elif json:
        print_json(ended)
    raise typer.Exit(0 if all(each.complete for each in ended) else INCOMPLETE)


def _calibrate(run: str, labels: Path, *, json: bool) -> None:
    """Prints the run's judges compared with people's labels."""
    found = judges.show_calibration(run, labels)
    if not in_json(found, json=json):
        verdict_tables.print_calibration(console(), found)


def _follow_each(begun: Sequence[SubmittedJudge], *, json: bool) -> list[RunProgress]:
    """Shows the progress of one run after the other; returns how they ended."""
    ended = []
    for judge in begun:
        if not json:
            console().print(_summary(judge), soft_wrap=True)
        ended.append(follow(judge.run, stderr=json))
        if not json:
            summarize(ended[-1], json=False)
    return ended


def _print_submitted(begun: Sequence[SubmittedJudge], *, json: bool) -> None:
    if in_json(begun, json=json):
        return
    for judge in begun:
        typer.echo(judge.run)
        hint = f"{_summary(judge)} `cotrail watch {judge.run}` shows progress."
        console(stderr=True).print(hint, style="dim", soft_wrap=True)


def _summary(judge: SubmittedJudge) -> str:
    """What a judge's run does."""
    judged = " and ".join(judge.judged)
    left_out = f"; {count(judge.left_out, 'question')} without an answer to judge" if judge.left_out else ""
    asked = count(judge.questions, "answer" if len(judge.judged) == 1 else "pair")
    return f"{judge.run}: {judge.model} judges {asked} of {judged} by {judge.rubric}{left_out}."


def verdicts(
    run: RunName, *, questions: Annotated[bool, option("verdicts.questions")] = False, json: Json = False
) -> None:
    """Show what judges say of a run: their verdicts, with means and intervals, and how far they agree.

    `cotrail judge RUN --model NAME` has a model judge it. What judges under way have said so far counts.
    """
    found = operations.show_verdicts(run, per_question=questions)
    if not in_json(found, json=json):
        _print(found)


def _print(found: RunVerdicts) -> None:
    screen = console()
    screen.print(
        f"{found.run}: {found.answered:,} of {count(found.questions, 'question')} answered, "
        f"{count(len(found.judges), 'judge')}"
    )
    if not found.judges:
        screen.print(f"`cotrail judge {found.run} --model NAME` has a model judge it.")
        return
    verdict_tables.print_judges(screen, found.judges)
    screen.print(MEANS, style="dim")
    verdict_tables.print_kinds(screen, found.judges)
    for each in found.agreements:
        screen.print()
        verdict_tables.print_agreement(screen, each)
    if found.per_question:
        screen.print()
        verdict_tables.print_questions(screen, found)
