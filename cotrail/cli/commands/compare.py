"""`cotrail compare`: which of several runs is better on the same questions, and how sure that is."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from cotrail.cli.request_options import Json, argument, option
from cotrail.cli.terminal.output import console, heading, in_json, print_tables, write_text
from cotrail.common.humanize import count
from cotrail.services.results import comparing
from cotrail.services.results.compared_questions import DifferingQuestion
from cotrail.services.results.comparison import ComparedPair, Comparison
from cotrail.services.results.comparison_tables import comparison_tables
from cotrail.services.results.comparison_words import HAS, design, headline, pair_sentences, shown_score
from cotrail.services.results.reports.comparison_page import comparison_page, write_front
from cotrail.services.results.reports.sheets import sheet

SHOWN = 3
"""Wins, and losses, of a pair that are printed."""


def compare(
    runs: Annotated[list[str], argument("compare.runs")],
    *,
    against: Annotated[str | None, option("compare.against")] = None,
    metric: Annotated[list[str] | None, option("compare.metric")] = None,
    repeats: Annotated[bool, option("compare.repeats")] = False,
    html: Annotated[Path | None, option("compare.html")] = None,
    figure: Annotated[Path | None, option("compare.figure")] = None,
    every: Annotated[bool, option("compare.all")] = False,
    json: Json = False,
) -> None:
    """Say which of several runs on the same questions is better, by how much, how sure that is, where and why.

    docs/comparing.md describes the tests and what they promise.

    Example: `cotrail compare ircot-8b one-step-8b --metric answer_f1 --html compared.html`
    """
    with console(stderr=True).status("comparing…") as status:
        comparison = comparing.compare_runs(
            runs, against=against, metrics=metric or (), repeats=repeats, tell=lambda words: status.update(f"{words}…")
        )
    if html:
        write_text(html, comparison_page(comparison), "choose another --html")
    if figure:
        write_front(comparison, figure)
    if in_json(comparison, json=json):
        return
    screen = console()
    _print(screen, comparison, every=every)
    for path in (html, figure):
        if path:
            screen.print(f"Wrote {path}.", soft_wrap=True)


def _print(screen: Console, comparison: Comparison, *, every: bool) -> None:
    screen.print(heading(headline(comparison)), soft_wrap=not screen.is_terminal)
    for sentence in pair_sentences(comparison):
        screen.print(f"  {sentence}", soft_wrap=not screen.is_terminal)
    if every or not comparison.is_fixed:  # an open run is read with what that means
        for sentence in design(comparison):
            screen.print(Text(sentence, style="dim"), soft_wrap=not screen.is_terminal)
    tables = comparison_tables(comparison)
    print_tables(map(sheet, tables if every else tables[:1]), screen)
    if not every:
        screen.print("--all has every table, how they were made, and the questions that differ.", style="dim")
        return
    for pair in comparison.pairs:
        _print_questions(screen, comparison, pair)


def _print_questions(screen: Console, comparison: Comparison, pair: ComparedPair) -> None:
    """The first few questions that each of two runs answered better."""
    first, second = (comparison.run(run_id).name for run_id in (pair.first, pair.second))
    screen.print()
    screen.print(heading(f"{first} and {second}: {count(len(pair.outcomes.ties), 'question')} equal"), soft_wrap=True)
    for name, keys, is_win in ((first, pair.outcomes.wins, True), (second, pair.outcomes.losses, False)):
        screen.print(
            f"{name} {HAS[comparison.primary.is_count]} on {count(len(keys), 'question')}{':' if keys else ''}",
            soft_wrap=True,
        )
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
