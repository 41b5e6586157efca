"""A question on the terminal while it is answered: each step as it ends, and below them what is being written."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from cotrail.cli.terminal.shown_steps import step_body, step_head
from cotrail.common.humanize import count
from cotrail.common.printable_text import one_line, printable
from cotrail.services.results.answering import Answer, AnyAskEvent, Asked, AskStepEnded, AskToken

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
