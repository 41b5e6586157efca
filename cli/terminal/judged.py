"""A judge's verdict on the terminal, beneath the answers that it is on."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cotrail.cli.terminal.output import grid
from cotrail.common.humanize import number
from cotrail.common.printable_text import cut, one_line
from cotrail.core.questions import JudgedAnswer
from cotrail.systems.judge.judgement import ClaimVerdict, Judgement

SNIPPET = 200


def judged(judgement: Judgement, answers: Sequence[JudgedAnswer], *, full: bool) -> RenderableType:
    """The judged answers, the verdict with its reasons, and each claim with the paragraphs cited for it."""
    table = grid("dim", "")
    for answer in answers:
        shown = answer.answer if full else one_line(cut(answer.answer, SNIPPET))
        table.add_row(f"judged in {answer.run}", Text(shown or "(empty)"))
    table.add_row("verdict", Text(_verdict(judgement), style="bold"))
    if judgement.extracted:
        table.add_row("extracted", Text(one_line(judgement.extracted)))
    if judgement.reasoning:
        table.add_row("reasons", Text(judgement.reasoning))
    return Group(table, Text(), _claims(judgement.claims)) if judgement.claims else table


def _verdict(judgement: Judgement) -> str:
    score = f"{judgement.verdict} by {judgement.rubric}, score {number(judgement.score, 2)}"
    sure = "" if judgement.confidence is None else f", {judgement.confidence:.0%} sure"
    return f"{score}{sure}{'; the two orders disagree' if judgement.consistent is False else ''}"


def _claims(claims: Sequence[ClaimVerdict]) -> Table:
    table = Table(box=None, header_style="dim")
    table.add_column("claim", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("cited", no_wrap=True)
    for each in claims:
        cited = ", ".join(map(str, each.cited)) or "none"
        table.add_row(Text(one_line(each.claim)), each.verdict, cited)
    return table
