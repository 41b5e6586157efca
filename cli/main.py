"""The command `cotrail`: registers the subcommands, and turns expected errors into one line and an exit code."""

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
    annotate,
    audit,
    control,
    corpora,
    data,
    datasets,
    demo,
    demonstrations,
    experiment,
    export,
    fork,
    index,
    knowledge,
    label,
    logs,
    models,
    prune,
    replay,
    report,
    rethink,
    rethinking,
    score,
    show,
    stack,
    submit,
    systems,
    trace,
    watch,
)
from cli.output import console
from cli.suggestions import usage
from configuration.settings import settings
from cotrail.common.humanize import cut
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

**Exit codes**: 0 done · 1 something else went wrong · 2 the input can't be used · 3 a server doesn't answer ·
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


_STACK, _WORK, _LISTS, _RESULTS = "The local stack", "Work", "What there is", "Results"

app.command(rich_help_panel=_STACK)(stack.up)
app.command(rich_help_panel=_STACK)(stack.down)
app.command(name="stack", rich_help_panel=_STACK)(stack.stack)
app.command(rich_help_panel=_STACK)(logs.logs)
app.command(rich_help_panel=_STACK)(demo.demo)
app.command(rich_help_panel=_WORK)(index.index)
app.add_typer(data.data, rich_help_panel=_WORK)
app.add_typer(demonstrations.demonstrations, rich_help_panel=_WORK)
app.add_typer(knowledge.knowledge, rich_help_panel=_WORK)
app.command(rich_help_panel=_WORK)(submit.submit)
app.command(rich_help_panel=_WORK)(fork.fork)
app.add_typer(experiment.experiment, rich_help_panel=_WORK)
app.command(rich_help_panel=_WORK)(watch.watch)
app.command(rich_help_panel=_WORK)(control.pause)
app.command(rich_help_panel=_WORK)(control.resume)
app.command(rich_help_panel=_WORK)(control.retry)
app.command(rich_help_panel=_WORK, context_settings={"ignore_unknown_options": True})(control.prioritize)
app.command(rich_help_panel=_WORK)(control.cancel)
app.command(name="prune", rich_help_panel=_WORK)(prune.prune_runs)
app.command(rich_help_panel=_LISTS)(systems.systems)
app.command(rich_help_panel=_LISTS)(models.models)
app.command(rich_help_panel=_LISTS)(corpora.corpora)
app.command(rich_help_panel=_LISTS)(datasets.datasets)
app.command(rich_help_panel=_RESULTS)(show.runs)
app.command(rich_help_panel=_RESULTS)(show.show)
app.command(rich_help_panel=_RESULTS)(label.label)
app.command(rich_help_panel=_RESULTS)(trace.trace)
app.command(rich_help_panel=_RESULTS)(replay.replay)
app.add_typer(audit.audit, name="audit", rich_help_panel=_RESULTS)
app.command(rich_help_panel=_RESULTS)(score.score)
app.command(rich_help_panel=_RESULTS)(rethink.rethink)
app.command(rich_help_panel=_RESULTS)(rethinking.rethinking)
app.command(rich_help_panel=_RESULTS)(annotate.annotate)
app.command(rich_help_panel=_RESULTS)(export.export)
app.command(rich_help_panel=_RESULTS)(report.report)


def main() -> None:
    """Runs the command line of this process and exits."""
    # Libraries' warnings go to the terminal through this handler, and may quote texts with control characters.
    if logging.lastResort is not None:
        print_safely(logging.lastResort)
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe. Python would complain when it flushes the stream at exit, so that goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def _run() -> int:
    try:
        return app(standalone_mode=False, prog_name="cotrail") or 0
    except typer.TyperException as error:
        return _refuse(usage(error), 2)
    except CotrailError as error:
        return _refuse(str(error), exit_code(error))
    except UnicodeEncodeError as error:
        return _refuse(f"{error.object!r} isn't text in UTF-8; correct what was typed", 2)
    except ModuleNotFoundError as error:
        return _refuse(f"this needs {error.name}, which isn't installed: pip install 'cotrail[local]'", 1)
    except typer.Abort:
        return INTERRUPTED
    except OSError as error:
        # A closed pipe is no error to report: `main` ends the process quietly.
        if error.errno == errno.EPIPE:
            raise BrokenPipeError from error
        return _refuse(f"{error.strerror}: {error.filename}" if error.filename else str(error), 1)
    except Exception as error:  # noqa: BLE001 - Python itself would print it as it is
        console(stderr=True).print(Text(indented("".join(traceback.format_exception(error)))), soft_wrap=True)
        return 1


def exit_code(error: CotrailError) -> int:
    """The exit code of the process for this error."""
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
    """The message without the passwords and keys of the settings, which a server's own message may repeat."""
    try:
        return settings().secrets.hidden(message)
    except InputError:  # the message is about these settings, and quotes none
        return message


if __name__ == "__main__":
    main()
