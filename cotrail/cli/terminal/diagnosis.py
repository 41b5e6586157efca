"""Tables of what `cotrail doctor` found, of the workers and of the local stack."""

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from cotrail.cli.terminal.output import console, print_rows, titled
from cotrail.common.humanize import count, duration
from cotrail.common.optional_packages import installed_with
from cotrail.common.printable_text import one_line
from cotrail.configuration.settings import settings
from cotrail.services.diagnosing import Diagnosed, Soundness
from cotrail.services.runs.workers import ListedWorker, WorkerList, WorkerState

if TYPE_CHECKING:
    from cotrail.workers.stack.stack import Stack
    from cotrail.workers.stack.web import Access


FINDING_STYLES = {Soundness.RIGHT: "green", Soundness.DOUBTFUL: "yellow", Soundness.WRONG: "red"}


def print_diagnosis(diagnosis: Diagnosed) -> None:
    """Prints a row for each finding, and how many aren't right."""
    screen = console()
    columns = titled("what", "", "verdict", "found", "what to do")
    rows: list[list[str | Text]] = [
        [each.part, each.what, Text(each.verdict, style=FINDING_STYLES[each.verdict]), each.found, each.do]
        for each in diagnosis.lines
    ]
    print_rows(screen, columns, rows)
    wrong, doubtful = (
        sum(each.verdict is verdict for each in diagnosis.lines) for verdict in (Soundness.WRONG, Soundness.DOUBTFUL)
    )
    total = count(len(diagnosis.lines), "finding")
    said = f"{wrong or 'Nothing'} wrong, {doubtful or 'nothing'} doubtful, of {total} on {diagnosis.host}"
    screen.print(f"{said}, {diagnosis.version}.", soft_wrap=True, highlight=False)


MOST_STEPS = 3
"""Steps shown of each worker; JSON has all."""

STYLES = {WorkerState.WORKING: "green", WorkerState.ACTIVE: "green", WorkerState.SILENT: "red"}


def print_workers(workers: WorkerList) -> None:
    """Prints a row for each worker, and what couldn't be found out."""
    screen = console()
    if workers.workers:
        columns = titled("host", "role", "name", "pid", "state", "what it is doing")
        print_rows(screen, columns, [_row(each) for each in workers.workers])
    elif workers.unasked is None:
        screen.print("No workers. `cotrail up`, or `cotrail worker ROLE` on any host, starts them.", soft_wrap=True)
    if workers.unasked is not None:
        text = f"Redis doesn't answer ({workers.unasked}): only workers that hold steps are found."
        screen.print(text, style="yellow", soft_wrap=True)
    if not any(each.state is WorkerState.ACTIVE for each in workers.workers):
        text = "No maintenance process is active, so no questions begin: `cotrail worker maintenance` starts one."
        screen.print(text, style="yellow", soft_wrap=True)


def _row(each: ListedWorker) -> list[str | Text]:
    state = str(each.state).replace("_", " ")
    return [
        each.host,
        each.role,
        each.name or "",
        str(each.pid),
        Text(state, style=STYLES.get(each.state, "")),
        _doing(each),
    ]


def _doing(each: ListedWorker) -> Text:
    lines = [one_line(each.problem)] if each.problem else []
    lines += (
        one_line(f"{step.kind} for {step.question} in {step.run}, held for {duration(step.seconds)}")
        for step in each.steps[:MOST_STEPS]
    )
    if more := len(each.steps) - MOST_STEPS:
        lines += [f"and {more:,} more"] if more > 0 else []
    return Text("\n".join(lines))


# The local stack, for the commands that start, stop and show it.

LINE_SECONDS = 30.0
"""How often a line says what is being waited for, where the output is no terminal."""


def local_stack() -> "Stack":
    """The stack of the home that the settings name; raises NotInstalledError."""
    with installed_with("local"):
        from cotrail.workers.stack.stack import Stack
    return Stack(settings())


def startable_stack() -> "Stack":
    """The same, if everything that it needs is installed; raises NotInstalledError, which names all that is missing."""
    from cotrail.workers.stack.python import check_requirements

    check_requirements(settings())
    return local_stack()


def start(stack: "Stack", screen: Console, *, flower: bool = False) -> "Access | None":
    """Start the stack, and show what is being waited for; returns the access to Flower if it runs.

    Raises UnavailableError where it can't be started. Nothing that it started stays then, nor where it is ended.
    """
    said = time.monotonic()

    with screen.status("starting the local stack…") as status:

        def waiting(line: str) -> None:
            nonlocal said
            if screen.is_terminal:
                status.update(line)
            elif time.monotonic() - said > LINE_SECONDS:
                said = time.monotonic()
                screen.print(line, soft_wrap=True)

        return stack.up(flower=flower, waiting=waiting)
