"""The command `cotrail`: registers the commands and turns expected errors into one line and an exit code."""

import errno
import logging
import os
import sys
import traceback
from importlib.metadata import version as installed
from typing import Annotated

import typer
from rich.text import Text

from cli import (
    annotating,
    auditing,
    control,
    corpora,
    data,
    demo,
    demonstrating,
    experiment,
    exporting,
    forking,
    knowledge,
    pruning,
    replaying,
    reporting,
    rethinking,
    rethinking_report,
    running,
    scoring,
    showing,
    stack,
    submitting,
    tracing,
)
from cli.output import console, cut
from configuration.settings import settings
from cotrail.common.log_formatting import print_safely
from cotrail.common.printable_text import indented
from cotrail.errors import CotrailError, InputError, UnavailableError

INTERRUPTED = 130

LONGEST_MESSAGE = 4_000
"""Characters; an error may quote what it met."""

EPILOG = """
**A first run**, after `cotrail up`:

`cotrail index corpus.jsonl --name mine`

`cotrail submit --system ircot --dataset jsonl --questions questions.jsonl --corpus mine --wait`

`cotrail trace latest 1` · `cotrail score latest` · `cotrail report latest --html report.html`

**Exit codes**: 0 done · 1 something else went wrong · 2 what was handed in can't be used · 3 a server doesn't answer ·
4 a run that was waited for ended with failed, blocked or cancelled questions · 5 nothing is wrong with a run's record,
but not all of it is sealed yet · 130 interrupted
"""

app = typer.Typer(
    name="cotrail",
    help="Multi-step retrieval-augmented reasoning as queued, resumable, audited work.",
    epilog=EPILOG,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - as typer calls it
    if wanted:
        typer.echo(f"cotrail {installed('cotrail')}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Multi-step retrieval-augmented reasoning as queued, resumable, audited work."""


_STACK, _WORK, _RESULTS = "The local stack", "Work", "Results"

app.command(rich_help_panel=_STACK)(stack.up)
app.command(rich_help_panel=_STACK)(stack.down)
app.command(name="stack", rich_help_panel=_STACK)(stack.stack)
app.command(rich_help_panel=_STACK)(demo.demo)
app.command(rich_help_panel=_WORK)(corpora.index)
app.add_typer(data.data, rich_help_panel=_WORK)
app.add_typer(demonstrating.demonstrations, rich_help_panel=_WORK)
app.add_typer(knowledge.knowledge, rich_help_panel=_WORK)
app.command(rich_help_panel=_WORK)(submitting.submit)
app.command(rich_help_panel=_WORK)(forking.fork)
app.add_typer(experiment.experiment, rich_help_panel=_WORK)
app.command(rich_help_panel=_WORK)(running.watch)
app.command(rich_help_panel=_WORK)(control.pause)
app.command(rich_help_panel=_WORK)(control.resume)
app.command(rich_help_panel=_WORK)(control.retry)
app.command(rich_help_panel=_WORK, context_settings={"ignore_unknown_options": True})(control.prioritize)
app.command(rich_help_panel=_WORK)(control.cancel)
app.command(name="prune", rich_help_panel=_WORK)(pruning.prune_runs)
app.command(rich_help_panel=_RESULTS)(showing.runs)
app.command(rich_help_panel=_RESULTS)(showing.show)
app.command(rich_help_panel=_RESULTS)(tracing.trace)
app.command(rich_help_panel=_RESULTS)(replaying.replay)
app.add_typer(auditing.audit, name="audit", rich_help_panel=_RESULTS)
app.command(rich_help_panel=_RESULTS)(scoring.score)
app.command(rich_help_panel=_RESULTS)(rethinking.rethink)
app.command(rich_help_panel=_RESULTS)(rethinking_report.rethinking)
app.command(rich_help_panel=_RESULTS)(annotating.annotate)
app.command(rich_help_panel=_RESULTS)(exporting.export)
app.command(rich_help_panel=_RESULTS)(reporting.report)


def main() -> None:
    """Runs the command line of this process and exits."""
    if logging.lastResort is not None:
        print_safely(logging.lastResort)
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python would complain as it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def _run() -> int:
    try:
        return app(standalone_mode=False, prog_name="cotrail") or 0
    except typer.TyperException as error:
        return _refuse(_usage(error), 2)
    except CotrailError as error:
        return _refuse(str(error), exit_code(error))
    except UnicodeEncodeError as error:
        return _refuse(f"{error.object!r} isn't text in UTF-8; correct what was typed", 2)
    except ModuleNotFoundError as error:
        return _refuse(f"this needs {error.name}, which isn't installed: pip install 'cotrail[local]'", 1)
    except typer.Abort:
        return INTERRUPTED
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise BrokenPipeError from error
        return _refuse(f"{error.strerror}: {error.filename}" if error.filename else str(error), 1)
    except Exception as error:  # noqa: BLE001 - Python itself would print it as it is
        console(stderr=True).print(Text(indented("".join(traceback.format_exception(error)))), soft_wrap=True)
        return 1


def exit_code(error: CotrailError) -> int:
    """What the process exits with for this error."""
    match error:
        case InputError():
            return 2
        case UnavailableError():
            return 3
    return 1


def _refuse(message: str, code: int) -> int:
    console(stderr=True).print(f"cotrail: {cut(_discreet(message), LONGEST_MESSAGE)}", soft_wrap=True)
    return code


def _discreet(message: str) -> str:
    """Without the passwords and keys of the settings, which a server may have said again."""
    try:
        return settings().secrets.hidden(message)
    except InputError:  # the message is about these settings, and quotes none
        return message


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "cotrail"
    return f"{error.format_message().rstrip('.')}; see `{command} --help`"


if __name__ == "__main__":
    main()
