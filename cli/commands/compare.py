"""`cotrail compare`: which of several runs is better on the same questions, and how sure that is."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from cotrail.cli.arguments import Json
from cotrail.cli.terminal.files import write_text
from cotrail.cli.terminal.output import console, heading, print_json
from cotrail.cli.terminal.tables import print_tables
from cotrail.common.humanize import count
from cotrail.services.operations import comparisons
from cotrail.services.views.comparing_tables import comparison_tables
from cotrail.services.views.comparing_traces import DifferingQuestion
from cotrail.services.views.comparing_words import design, headline, pair_sentences, shown_score
from cotrail.services.views.comparison import ComparedPair, Comparison
from cotrail.services.views.reports.comparison_figures import write_front
from cotrail.services.views.reports.comparison_page import comparison_page
from cotrail.services.views.reports.sheets import sheet

SHOWN = 3
"""Wins, and losses, of a pair that are printed."""


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Two or more runs: ids, names, or `latest`.", show_default=False),
    ],
    *,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="RUN",
            help="One of them, with which alone the others are compared; by default each is with each.",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="A metric to compare by, such as answer_f1; the first one decides. May be repeated. By default the "
            "main scores that all runs have.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="PATH", help="Write the comparison as a page.", show_default=False),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            metavar="PATH",
            help="Write quality against cost as a figure: .svg, .png or .pdf.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say which of several runs on the same questions is better, by how much, how sure that is, where and why.

    docs/comparing.md describes the tests and what they promise.

    Example: `cotrail compare ircot-8b one-step-8b --metric answer_f1 --html compared.html`
    """
    with console(stderr=True).status("comparing…") as status:
        comparison = comparisons.show(
            runs, against=against, metrics=metric or (), tell=lambda words: status.update(f"{words}…")
        )
    if html:
        write_text(html, comparison_page(comparison), "choose another --html")
    if figure:
        write_front(comparison, figure)
    if json:
        print_json(comparison)
        return
    screen = console()
    _print(screen, comparison)
    for path in (html, figure):
        if path:
            screen.print(f"Wrote {path}.", soft_wrap=True)


def _print(screen: Console, comparison: Comparison) -> None:
    screen.print(heading(headline(comparison)), soft_wrap=not screen.is_terminal)
    for sentence in pair_sentences(comparison):
        screen.print(f"  {sentence}", soft_wrap=not screen.is_terminal)
    for sentence in design(comparison):
        screen.print(Text(sentence, style="dim"), soft_wrap=not screen.is_terminal)
    print_tables((sheet(table) for table in comparison_tables(comparison)), screen)
    for pair in comparison.pairs:
        _print_questions(screen, comparison, pair)


def _print_questions(screen: Console, comparison: Comparison, pair: ComparedPair) -> None:
    """The first few questions that each of two runs answered better."""
    first, second = (comparison.run(run_id).name for run_id in (pair.first, pair.second))
    screen.print()
    screen.print(heading(f"{first} and {second}: {count(len(pair.outcomes.ties), 'question')} equal"), soft_wrap=True)
    for name, keys, is_win in ((first, pair.outcomes.wins, True), (second, pair.outcomes.losses, False)):
        screen.print(f"{name} is better on {count(len(keys), 'question')}{':' if keys else ''}", soft_wrap=True)
        shown = list(islice((each for each in pair.shown if each.is_win is is_win), SHOWN))
        for question in shown:
            for line in _lines(comparison, question, (first, second)):
                screen.print(Padding(line, (0, 0, 0, 2)))
        if len(keys) > len(shown):
            screen.print(f"  and {len(keys) - len(shown):,} more, whose ids --json has", style="dim", soft_wrap=True)


def _lines(comparison: Comparison, question: DifferingQuestion, names: Sequence[str]) -> Iterator[Text]:
    yield Text.assemble((question.key, "bold"), f"  {question.text}")
    for name, side in zip(names, (question.first, question.second), strict=True):
        answer = "no answer" if side.answer is None else side.answer or "(empty)"
        yield Text.assemble((f"  {name} {shown_score(side.score, comparison)}  ", "dim"), answer)
    parted = question.parting
    words = f"step {parted.step}: {parted.words}" if parted else "the traces are the same to the end"
    yield Text(f"  {words}", style="dim")
