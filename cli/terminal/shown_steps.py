"""Steps on the terminal."""

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cotrail.cli.terminal.output import grid
from cotrail.common.printable_text import cut, one_line
from cotrail.core.views import (
    Facts,
    FoundParagraph,
    FoundParagraphs,
    Note,
    Part,
    Recorded,
    ScoredTexts,
    Thoughts,
    ToolCalls,
    WrittenText,
)
from cotrail.services.views.shown_steps import ShownStep

SNIPPET = 160
"""The most characters shown of a paragraph; `--full` shows all of it."""

THOUGHT = 80
"""The most characters shown of a thought; `--thoughts` shows all of it."""

MESSAGE, LINES = 1000, 20
"""The most characters and lines shown of what a model wrote; `--full` shows all of it."""


def step_head(step: ShownStep, turn: str) -> Text:
    """Its number and kind, and what it was about; turn: what it is in a conversation, empty in others."""
    text = Text(f"{step.sequence:>2} ", style="dim")
    text.append(step.kind, style="bold cyan")
    for label in (turn, step.view.source, *step.view.labels):
        if label:
            text.append(f"  {label}", style="cyan")
    if step.view.asked:
        text.append(f"  “{one_line(step.view.asked)}”")
    return text


def step_body(step: ShownStep, *, full: bool, thoughts: bool = False) -> RenderableType:
    """What came out of it; full: with paragraphs and texts whole; thoughts: with the model's thoughts whole."""
    parts = [_part(part, step, full=full, thoughts=thoughts) for part in step.view.parts]
    if step.failure:
        return Group(Text(f"failed: {step.failure.type}: {step.failure.message}", style="red"), *parts)
    return Group(*parts, Text(step.pending, style="dim")) if step.pending else Group(*parts)


def _part(part: Part, step: ShownStep, *, full: bool, thoughts: bool) -> RenderableType:
    match part:
        case FoundParagraphs():
            return _found(part, full=full) if part.hits else Text("nothing found", style="dim")
        case Thoughts():
            return _thoughts(part, whole=thoughts)
        case WrittenText():
            return Text((part.text if full else _beginning(part.text)) or part.blank)
        case ToolCalls():
            return Text("\n".join(f"called {one_line(call.name)} {one_line(call.arguments)}" for call in part.calls))
        case ScoredTexts():
            return _scores(part)
        case Facts():
            worker = [step.worker] if step.worker else []
            return Text(" · ".join((*part.facts, *step.words, *worker)), style="dim")
        case Note():
            return Text(one_line(part.text))
        case Recorded():
            result = "" if part.result is None else f"\n{json_of(part.result)}"
            return Text(json_of(part.request), style="dim").append(result, style="not dim")
    raise TypeError(f"{type(part).__name__} has no form on the terminal")


def _thoughts(part: Thoughts, *, whole: bool) -> Text:
    text = Text(part.words, style="dim")
    if whole and part.text:
        return text.append(f"\n{part.text}", style="italic")
    return text.append(f": {one_line(cut(part.text, THOUGHT))} (--thoughts)" if part.text else "")


def _found(paragraphs: FoundParagraphs, *, full: bool) -> Table:
    table = grid("green", "yellow", "dim", "dim", "")
    table.columns[2].justify = table.columns[3].justify = "right"
    for hit in paragraphs.hits:
        marks = "+" if hit.new else " ", "★" if hit.gold else " "
        table.add_row(*marks, str(hit.rank), f"{hit.score:.2f}", _paragraph(hit, full=full))
    return table


def _paragraph(hit: FoundParagraph, *, full: bool) -> Text:
    text = Text(one_line(hit.paragraph.title), style="bold")
    body = hit.paragraph.text if full else cut(hit.paragraph.text, SNIPPET)
    return text.append(f"  {body}", style="not bold dim")


def _scores(scores: ScoredTexts) -> Table:
    table = grid("", "dim")
    table.columns[0].justify = "right"
    for row in scores.rows:
        table.add_row(f"{row.score:.2f}", one_line(row.text))
    return table


def _beginning(text: str) -> str:
    """A text whose end is left out where it would bury what stands below it."""
    beginning = "\n".join(text[:MESSAGE].split("\n", LINES)[:LINES])
    left_out = len(text) - len(beginning)
    return f"{beginning}…\n({left_out:,} more characters: --full)" if left_out else text


def json_of(value: object) -> str:
    """A value that has no form of its own, as JSON."""
    return msgspec.json.encode(value).decode()
