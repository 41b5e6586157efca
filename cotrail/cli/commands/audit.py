"""`cotrail audit`: verification of a run's audit trail, and the trail as files for other programs."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cotrail.audit.bundles import write_bundle
from cotrail.audit.findings import Verification
from cotrail.audit.records import Record
from cotrail.cli.request_options import Json, RunName, argument, option
from cotrail.cli.terminal.output import console, in_json, print_json
from cotrail.cli.terminal.shown_steps import print_prompt
from cotrail.common.humanize import count
from cotrail.errors import InputError
from cotrail.services.results import auditing, steps
from cotrail.services.results.steps import NAMED
from cotrail.services.runs import labels
from cotrail.services.runs.watching import POLL_SECONDS

DEPARTED, UNSEALED = 1, 5
"""The exit codes where a record was changed, and where nothing is wrong but not all of it is sealed."""

SEALING_SECONDS = 10.0
"""How long a run whose questions have all ended is waited for: the workers seal it a moment later."""

MOST_FINDINGS = 20
"""The most findings that are printed; `--json` has all."""

SUFFIX = ".audit.jsonl.zst"

audit = typer.Typer(help="Verify a run's record, export it, and show the exact prompts.", no_args_is_help=True)

Output = Annotated[Path | None, option("audit.output")]


@audit.command()
def verify(
    what: Annotated[str, argument("audit.verify.what")],
    digest: Annotated[str | None, option("audit.verify.digest")] = None,
    plan: Annotated[str | None, option("audit.verify.plan")] = None,
    *,
    json: Json = False,
) -> None:
    """Compute all digests of a run again, and name what was changed, removed, added or reordered.

    Needs no model, no index and no worker; for a bundle no database either.

    **Exit codes**: 0 all of it is sealed and as it was recorded · 1 something isn't, or can't be read · 5 nothing is
    wrong, but questions haven't ended or the run isn't closed yet, so that nothing seals these rows · 3 the database
    doesn't answer
    """
    with _progress() as progress:
        follow = partial(_followed, progress)
        if what.endswith(SUFFIX) or Path(what).is_file():  # in this process in any case, since it needs nothing else
            verification = auditing.verify_bundle.function(Path(what), digest=digest, plan=plan, follow=follow)
        else:
            _wait_for_seal(what)
            verification = auditing.verify_run(what, digest=digest, plan=plan, follow=follow)
    if not in_json(verification, json=json):
        _show(console(), verification)
    if verification.findings:
        raise typer.Exit(DEPARTED)
    if not verification.closed:
        raise typer.Exit(UNSEALED)


@audit.command()
def export(
    run: RunName,
    question: Annotated[str | None, option("audit.export.question")] = None,
    form: Annotated[Literal["bundle", "prov"], option("audit.export.format")] = "bundle",
    output: Output = None,
    *,
    json: Json = False,
) -> None:
    """Write all that is recorded of a run into one file: every prompt, result, paragraph and digest.

    The file is RUN.audit.jsonl.zst where no other is named; one that is there is never overwritten. A question's
    PROV-JSON is printed.
    """
    if (form == "prov") != (question is not None):
        raise InputError(
            "--format prov is for one question: give both --question QUESTION and --format prov, or neither"
        )
    found = labels.identify(run)
    if question is not None:
        _write_provenance(auditing.show_provenance(found.run, question), found.run, question, output, json=json)
        return
    path = output or Path(f"{found.run}{SUFFIX}")
    try:
        with _progress() as progress:
            lines = write_bundle(path, auditing.bundle(found.run, partial(_followed, progress)), found.run)
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); choose another --output") from error
    if not in_json({"run": found.run, "output": str(path), "lines": lines}, json=json):
        console().print(f"{path}: {count(lines, 'line')}. `cotrail audit verify {path}` checks it.", soft_wrap=True)


@audit.command()
def prompt(
    run: Annotated[str, argument("audit.prompt.run")],
    question: Annotated[str | None, argument("audit.prompt.question")] = None,
    step: Annotated[int | None, argument("audit.prompt.step")] = None,
    *,
    json: Json = False,
) -> None:
    """Print the exact prompt of a step, and nothing else: the bytes that the model saw.

    Examples: `cotrail audit prompt latest 1 3`, `cotrail audit prompt 4711`
    """
    if question is not None and step is not None:
        choice = steps.show_prompt(run, question, step)
    elif question is None:
        choice = steps.show_prompt_of(run)
    else:
        raise InputError(NAMED)
    print_prompt(choice, json=json)


def _wait_for_seal(run: str) -> None:
    """Waits some seconds for a run all of whose questions are sealed, and which isn't itself yet."""
    until = time.monotonic() + SEALING_SECONDS
    while (seals := auditing.show_seals(run)).digest is None and seals.sealed == seals.questions:
        if time.monotonic() > until:
            return
        time.sleep(POLL_SECONDS)


def _write_provenance(document: dict[str, object], run: str, question: str, output: Path | None, *, json: bool) -> None:
    if output is None:
        print_json(document)
        return
    output.write_bytes(msgspec.json.encode(document) + b"\n")
    if not in_json({"run": run, "question": question, "output": str(output)}, json=json):
        console().print(f"Wrote {output}.", soft_wrap=True)


@contextmanager
def _progress() -> Iterator[Progress]:
    """A transient bar on a terminal; nothing elsewhere."""
    screen = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        yield progress


def _followed(progress: Progress, records: Iterable[Record]) -> Iterator[Record]:
    """The same records; the bar moves with each question."""
    task = progress.add_task("Questions", total=None)
    for record in records:
        yield record
        if record.table == "runs":
            progress.update(task, total=int(record.row["size"] or 0))
        elif record.table == "questions":
            progress.advance(task)


def _show(screen: Console, verification: Verification) -> None:
    checked = ", ".join(count(number, _row(table)) for table, number in verification.records.items())
    screen.print(f"{verification.run}: {checked or 'nothing'} checked.", soft_wrap=True)
    if verification.findings:
        first = ", the first first" if len(verification.findings) > 1 else ""
        screen.print(f"{count(len(verification.findings), 'finding')}{first}:", style="bold red")
        for finding in verification.findings[:MOST_FINDINGS]:
            screen.print(f"  {finding}", soft_wrap=True)
        if len(verification.findings) > MOST_FINDINGS:
            screen.print(f"  … and {len(verification.findings) - MOST_FINDINGS:,} more; --json has all", style="dim")
    elif verification.imported:
        screen.print("It is as it was imported. That it happened so elsewhere, nothing shows.", style="bold yellow")
    elif verification.closed:
        screen.print("All of it is as it was recorded.", style="green")
    else:
        screen.print("What is sealed is as it was recorded.", style="green")
    for each in verification.edits[:MOST_FINDINGS]:
        screen.print(f"question {each.question}, step {each.step}: {each.edit}", style="cyan", soft_wrap=True)
    if len(verification.edits) > MOST_FINDINGS:
        screen.print(f"… and {len(verification.edits) - MOST_FINDINGS:,} more edits; --json has all", style="dim")
    if verification.open_questions or not (verification.closed or verification.findings):
        screen.print(f"NOT ALL OF IT IS SEALED: {_unsealed(verification)}", style="bold yellow", soft_wrap=True)
    if verification.digest is not None:
        screen.print(
            f"digest {verification.digest}{'' if verification.closed else ' (computed: no record has it)'}",
            soft_wrap=True,
        )
    screen.print(f"plan {verification.plan or 'none: sealed before plans were recorded'}", soft_wrap=True)


def _row(table: str) -> str:
    """What a row of the table is called."""
    return "demonstration set" if table == "demonstrations" else table.removesuffix("s").replace("_", " ")


def _unsealed(verification: Verification) -> str:
    """The rows whose changes no digest would show."""
    if not verification.open_questions:
        return "the run isn't closed; nothing shows whether its digest was removed, or questions from its end."
    open_ones = (
        f"{count(verification.open_questions, 'question')} and {count(verification.open_steps, 'step')} haven't ended"
    )
    return f"{open_ones}, and nothing shows whether these rows were changed."
