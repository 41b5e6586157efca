"""`cotrail submit` and `cotrail ask`: a run, or one question, is put into the queue."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from cotrail.cli.request_options import Json, argument, option, with_request_options
from cotrail.cli.terminal.following import follow
from cotrail.cli.terminal.output import console, in_json, print_json
from cotrail.cli.terminal.run_text import celery_app, print_estimate, print_warnings, summarize
from cotrail.cli.terminal.shown_steps import step_body, step_head
from cotrail.common.humanize import count
from cotrail.common.printable_text import one_line, printable
from cotrail.common.structs import assigned, nested
from cotrail.common.text_files import MAX_FILE_BYTES, MIB, shown_size
from cotrail.configuration.extensions import systems_folder
from cotrail.data.datasets.registry import find_dataset
from cotrail.errors import InputError
from cotrail.services.operations.operation import is_remote
from cotrail.services.results import asking
from cotrail.services.results.answering import Answer, AnyAskEvent, Asked, AskStepEnded, AskToken, End
from cotrail.services.runs import requests, submission
from cotrail.services.runs.requests import OF_MANY
from cotrail.services.runs.submission import Submitted
from cotrail.systems import own
from cotrail.systems.registry import find_system


@with_request_options
def submit(
    run_file: Annotated[Path | None, argument("submit.run_file")] = None,
    *,
    options: dict[str, Any],
    estimate: Annotated[bool, option("submit.estimate")] = False,
    wait: Annotated[bool, option("submit.wait")] = False,
    json: Json = False,
) -> None:
    """Submit a run to the queue and print its id.

    Everything is checked before anything is written. Workers carry it out; this command may end or be ended. With
    --repeat it prints the ids of all runs, a line each.

    Example: `cotrail submit --system ircot --dataset jsonl --questions questions.jsonl --corpus mine --wait`
    """
    values = _read(run_file) if run_file else {}
    places = dict.fromkeys(values, str(run_file)) | {key: f"--{key.replace('_', '-')}" for key in options}
    values = requests.overruled(values, options)
    if "system" in values:
        values["system"] = _system(values["system"], run_file.parent if run_file and "system" not in options else None)
    _check_named(values)
    with _kept(values.get("questions")) as questions:
        request = requests.make_request(values | {"questions": questions}, places)
        if estimate:
            print_estimate(submission.estimate_run(request), json=json)
            return
        submitted = submission.submit_run(request, celery_app)
    _follow(submitted, wait=wait, json=json)


def _system(name: Any, folder: Path | None = None) -> Any:
    """The name by which workers find a system, of a file too; folder: the one that its path is relative to."""
    if not isinstance(name, str) or not own.is_file(name):
        return name
    if is_remote():
        raise InputError(f"{name} isn't run by a server: its operator puts it into the folder `extensions` there")

    def warn(impurity: str) -> None:
        said = f"{impurity}: a run whose system asks for other steps than before is blocked."
        console(stderr=True).print(said, style="yellow", soft_wrap=True)

    return own.installed(str(folder / name) if folder else name, systems_folder(), warn)


@contextmanager
def _kept(questions: Any) -> Iterator[Any]:
    """The file of questions, which is read several times: of standard input or a pipe, a file with what they give."""
    source = 0 if questions in ("-", "/dev/stdin") else questions
    if source != 0 and not (isinstance(source, str) and Path(source).is_fifo()):
        yield questions
        return
    with TemporaryDirectory(prefix="cotrail-") as folder:
        path = Path(folder, "stdin")
        with open(source, "rb", closefd=source != 0) as pipe, path.open("wb") as file:
            while piece := pipe.read(MIB):
                file.write(piece)
                if file.tell() > MAX_FILE_BYTES:
                    raise InputError(f"{questions} holds more than {shown_size(MAX_FILE_BYTES)}; divide the questions")
        try:
            yield str(path)
        except InputError as error:
            raise type(error)(str(error).replace(str(path), "stdin")) from error


def _read(run_file: Path) -> dict[str, Any]:
    if run_file.suffix in (".json", ".jsonl"):
        raise InputError(f"{run_file} can't be a run file, which is TOML; a file of questions goes behind --questions")
    values = requests.read_run_file(run_file)
    requests.check_keys(values, str(run_file))
    return values


def _check_named(values: Mapping[str, Any]) -> None:
    """Refuses what is missing, and before that a name that is wrong, which says more than what else is missing."""
    missing = next((field for field in requests.REQUIRED_FIELDS if values.get(field) is None), None)
    if missing is None:
        return
    for field, check in (("system", find_system), ("dataset", find_dataset)):
        if isinstance(name := values.get(field), str):
            check(name)
    requests.check_keys(values)
    raise InputError(f"no {missing} given; name it with --{missing} or in the run file")


def _follow(submitted: Submitted, *, wait: bool, json: bool) -> None:
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
    try:
        for run in submitted.runs:
            if not in_json(run, json=json):
                typer.echo(run.run)
        sys.stdout.flush()
    except OSError:  # as on a full disk: who submits again asks twice
        console(stderr=True).print(f"In the queue all the same: {', '.join(run.run for run in submitted.runs)}")
        raise
    if json:
        return
    often = f", {times} times" if times > 1 else ""
    hint = f"{count(first.questions, 'question')} in the queue{often}. `cotrail watch {first.run}` shows progress."
    console(stderr=True).print(hint, style="dim", soft_wrap=True)
    for run in submitted.runs:
        console(stderr=True).print(f"plan {run.plan}", style="dim", soft_wrap=True)


UNANSWERED = 4
"""The exit code where the question has no answer."""


@partial(with_request_options, without=OF_MANY)
def ask(
    question: Annotated[str, argument("ask.question")],
    *,
    options: dict[str, Any],
    changes: Annotated[list[str] | None, option("ask.changes")] = None,
    json: Json = False,
) -> None:
    """Answer one question while you watch, ahead of all that is queued.

    Shows each search and each sentence as it is recorded, and on a terminal what is being written. Without --system,
    IRCoT answers; without --corpus, it searches the only one there is; without --model, the default of `cotrail models`
    writes. The question is a run like any other: `cotrail trace RUN 1` shows it again. Ctrl-C cancels it.

    Example: `cotrail ask "Which river flows through the town where Ada Lorn was born?" --corpus mine`
    """
    if "system" in options:
        options["system"] = _system(options["system"])
    request = requests.make_ask_request(
        {"question": question, **({"settings": nested(assigned(changes))} if changes else {}), **options},
        {key: f"--{key.replace('_', '-')}" for key in options},
    )
    if not is_remote():
        from cotrail.workers import celery_app  # noqa: F401 - messages go out through it

    status = ""
    with draw(console(stderr=json), silent=json) as show:
        for event in asking.ask(request):
            if event is None:
                continue
            show(event)
            match event:
                case Answer():
                    status = event.status
                case End() if json:
                    print_json(event.trace)
    raise typer.Exit(0 if status == "finished" else UNANSWERED)


Show = Callable[[AnyAskEvent], None]

LINES_LEFT = 4
"""The lines of a terminal that are left free below what is being written."""

REFRESHES = 20
"""How often a second at most the terminal is drawn again."""


@contextmanager
def draw(screen: Console, *, silent: bool = False) -> Iterator[Show]:
    """Draws what happens; elsewhere than on a terminal only what is recorded. silent: draws only what is amiss."""
    if silent:
        yield lambda event: _warn(screen, event)
    elif not screen.is_terminal:
        yield lambda event: _print(screen, event)
    else:
        with Live(console=screen, refresh_per_second=REFRESHES, transient=True) as live:
            yield _growing(live)


def _growing(live: Live) -> Show:
    writing: dict[int, Text] = {}

    def show(event: AnyAskEvent) -> None:
        match event:
            case AskToken():
                style = "dim italic" if event.thought else "italic"
                writing.setdefault(event.step, Text()).append(printable(event.text), style=style)
            case AskStepEnded():
                writing.pop(event.step.sequence, None)
        _print(live.console, event)
        live.update(Group(*(_end_of(text, live.console) for text in writing.values())))

    return show


def _end_of(text: Text, screen: Console) -> Text:
    """The last lines of a text, as many as there is room for."""
    lines = text.wrap(screen, screen.width)
    return Text("\n").join(lines[-max(1, screen.height - LINES_LEFT) :])


def _print(screen: Console, event: AnyAskEvent) -> None:
    match event:
        case Asked():
            screen.print(event.run, style="dim", soft_wrap=True)
            _warn(screen, event)
        case AskStepEnded():
            screen.print(step_head(event.step, ""))
            screen.print(Padding(step_body(event.step, full=False), (0, 0, 1, 3), expand=False))
        case Answer():
            _print_answer(screen, event)


def _print_answer(screen: Console, answer: Answer) -> None:
    if answer.answer is None:
        screen.print(Text(f"{answer.status}: {one_line(answer.reason or '')}", style="red"), soft_wrap=True)
        return
    screen.print(Text(one_line(answer.answer) or "(empty)", style="bold"), soft_wrap=True)
    usage = answer.usage
    facts = count(len(answer.sources), "source"), f"{usage.prompt:,} tokens read", f"{usage.generated:,} written"
    screen.print(Text(" · ".join(facts), style="dim"))


def _warn(screen: Console, event: AnyAskEvent) -> None:
    for warning in event.warnings if isinstance(event, Asked) else ():
        screen.print(warning, style="yellow", soft_wrap=True)
