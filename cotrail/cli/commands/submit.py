"""`cotrail submit`: puts a run into the queue."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cotrail.cli.arguments import Json
from cotrail.cli.request_options import with_request_options
from cotrail.cli.terminal.following import follow
from cotrail.cli.terminal.output import console, print_json
from cotrail.cli.terminal.run_text import celery_app, print_estimate, print_warnings, summarize
from cotrail.common.humanize import count
from cotrail.data.datasets.registry import find_dataset
from cotrail.errors import InputError
from cotrail.services.runs import estimating, submission
from cotrail.services.runs.requests import (
    REQUIRED_FIELDS,
    RunRequest,
    check_keys,
    make_request,
    overruled,
    read_run_file,
)
from cotrail.services.runs.submission import Submitted
from cotrail.systems.registry import find_system


@with_request_options
def submit(
    run_file: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN.toml",
            help="A TOML file with the options below by name (`retrieval_count = 4`), paths relative to it, and a "
            "table `[settings]` for the system's further settings. Options given here win.",
            show_default=False,
        ),
    ] = None,
    *,
    options: dict[str, Any],
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what the run may take and cost, and don't submit it.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress until the run is done.")] = False,
    json: Json = False,
) -> None:
    """Submit a run to the queue and print its id.

    Everything is checked before anything is written. Workers carry it out; this command may end or be ended. With
    --repeat it prints the ids of all runs, a line each.

    Example: `cotrail submit --system ircot --dataset jsonl --questions questions.jsonl --corpus mine --wait`
    """
    values = _read(run_file) if run_file else {}
    places = dict.fromkeys(values, str(run_file)) | {key: f"--{key.replace('_', '-')}" for key in options}
    values = overruled(values, options)
    _check_named(values)
    request = make_request(values, places)
    if estimate:
        print_estimate(estimating.estimate_run(request), json=json)
        return
    _submit(request, wait=wait, json=json)


def _read(run_file: Path) -> dict[str, Any]:
    if run_file.suffix in (".json", ".jsonl"):
        raise InputError(f"{run_file} can't be a run file, which is TOML; a file of questions goes behind --questions")
    values = read_run_file(run_file)
    check_keys(values, str(run_file))
    return values


def _check_named(values: Mapping[str, Any]) -> None:
    """Refuses what is missing, and before that a name that is wrong, which says more than what is missing beside it."""
    missing = next((field for field in REQUIRED_FIELDS if values.get(field) is None), None)
    if missing is None:
        return
    for field, check in (("system", find_system), ("dataset", find_dataset)):
        if isinstance(name := values.get(field), str):
            check(name)
    check_keys(values)
    raise InputError(f"no {missing} given; name it with --{missing} or in the run file")


def _submit(request: RunRequest, *, wait: bool, json: bool) -> None:
    submitted = submission.submit_run(request, celery_app)
    print_warnings(submitted)
    if not wait:
        _print_submitted(submitted, json=json)
        return
    for run in () if json else submitted.runs:
        console().print(f"Submitted {run.run} with {count(run.questions, 'question')}.", soft_wrap=True)
        console().print(f"plan {run.plan}", soft_wrap=True)
    raise typer.Exit(max([summarize(follow(run.run, stderr=json), json=json) for run in submitted.runs]))


def _print_submitted(submitted: Submitted, *, json: bool) -> None:
    first, times = submitted.runs[0], len(submitted.runs)
    for run in submitted.runs:
        if json:
            print_json(run)
        else:
            typer.echo(run.run)
    if json:
        return
    often = f", {times} times" if times > 1 else ""
    hint = f"{count(first.questions, 'question')} in the queue{often}. `cotrail watch {first.run}` shows progress."
    console(stderr=True).print(hint, style="dim", soft_wrap=True)
    for run in submitted.runs:
        console(stderr=True).print(f"plan {run.plan}", style="dim", soft_wrap=True)
