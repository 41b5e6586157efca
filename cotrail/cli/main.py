"""The command `cotrail`: registers the subcommands, and turns expected errors into one line and an exit code."""

import codecs
import errno
import io
import logging
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cotrail import __version__
from cotrail.cli.lazy_group import COMMANDS, LazyGroup, leave_out_types
from cotrail.cli.terminal.output import console, leave_in_order, print_json
from cotrail.common.log_formatting import print_safely
from cotrail.common.printable_text import cut, indented
from cotrail.common.processes import collect_seldom, wait_passively
from cotrail.errors import CotrailError, InputError, UnavailableError

INTERRUPTED = 130

LONGEST_MESSAGE = 4_000
"""Characters; an error may quote what it met."""

leave_out_types()

app = typer.Typer(
    name="cotrail",
    cls=LazyGroup,
    help="Multi-step retrieval-augmented reasoning as queued, resumable, audited work.",
    epilog=Path(__file__).with_name("epilog.md").read_text("utf-8"),
    rich_markup_mode="markdown",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(show: bool) -> None:  # noqa: FBT001 - as typer calls it
    if show:
        typer.echo(f"cotrail {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="SERVER",
            envvar="COTRAIL_SERVER",
            help="Have the command be carried out by a cotrail server: a URL, with the token in COTRAIL_TOKEN, or a "
            "name in servers.toml of COTRAIL_HOME.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Multi-step retrieval-augmented reasoning as queued, resumable, audited work."""
    if server is not None:
        _go_through(context, server)


def _go_through(context: typer.Context, server: str) -> None:
    """Have the command be carried out by a server; InputError where it works on this machine alone."""
    from cotrail.client.transport import RemoteTransport
    from cotrail.configuration.files import find_server
    from cotrail.configuration.settings import settings
    from cotrail.services.operations.operation import through

    command = next((each for each in COMMANDS if each.name == context.invoked_subcommand), None)
    if command is not None and command.here:
        raise InputError(
            f"`cotrail {command.name}` works on this machine alone, as {command.here}; leave out --server, and "
            "COTRAIL_SERVER"
        )
    found = find_server(server, settings().home)
    transport = RemoteTransport(found.url, found.token)
    context.call_on_close(transport.close)
    context.with_resource(through(transport))


def main() -> None:
    """Runs the command line of this process and exits."""
    collect_seldom()
    leave_in_order()
    wait_passively()
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - closed, as with `2>&-`
    if sys.stdout is None:
        sys.exit(_refuse("the standard output is closed, so nothing was done; send it to a file or to /dev/null", 2))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors="backslashreplace")  # it can't hold every text, and is to hold the rest
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
        from cotrail.cli.lazy_group import usage

        # Where a group was called without a command, its help is printed already, and there is no message.
        return _refuse(usage(error), 2) if error.format_message() else 2
    except CotrailError as error:
        return _refuse(str(error), exit_code(error), getattr(error, "__notes__", ()), error.page)
    except UnicodeEncodeError as error:
        return _refuse(f"{error.object!r} isn't text in UTF-8; correct what was typed", 2)
    except ModuleNotFoundError as error:
        absent = _absent(error)
        return _refuse(str(absent), 1, page=absent.page)
    except typer.Abort:
        return INTERRUPTED
    except OSError as error:
        # A closed pipe is no error to report: `main` ends the process quietly.
        if error.errno == errno.EPIPE:
            raise BrokenPipeError from error
        return _refuse(_unwritten(error), 1)
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


def _refuse(message: str, code: int, notes: Iterable[str] = (), page: str = "") -> int:
    text, lines = cut(_discreet(message), LONGEST_MESSAGE), [_discreet(note) for note in notes]
    if "--json" in sys.argv:
        print_json({"error": "\n".join([text, *lines]), "exit_code": code}, stderr=True)
        return code
    console(stderr=True).print(f"cotrail: {text}", soft_wrap=True)
    for line in ([Text(f"See {page}", style="dim")] if page else []) + [Text(line) for line in lines]:
        console(stderr=True).print(line, soft_wrap=True)
    return code


def _unwritten(error: OSError) -> str:
    """What is wrong with a file, or with what is printed into one, and what to do."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full and not error.filename:
        return f"what is printed can't be written ({error.strerror}); send it elsewhere, or make room"
    message = f"{error.strerror}: {error.filename}" if error.filename else str(error)
    advice = "; make room, or set COTRAIL_HOME to a folder on another disk" if full else ""
    return f"{message or type(error).__name__}{advice}"


def _absent(error: ModuleNotFoundError) -> CotrailError:
    from cotrail.common.optional_packages import extra_with, not_installed

    package = error.name or "a package"
    return not_installed(package, extra_with(package))


def _discreet(message: str) -> str:
    """The message without the passwords and keys of the settings, which a server's own message may repeat."""
    from cotrail.configuration.settings import settings

    try:
        return settings().secrets.hidden(message)
    except InputError:  # the message is about these settings, and quotes none
        return message


if __name__ == "__main__":
    main()
