"""`cotrail score`, `cotrail plan` and `cotrail compare`: scores, what was planned of them, and which run is better."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from cotrail.cli.request_options import Json, RunName, argument, option
from cotrail.cli.terminal import output
from cotrail.cli.terminal.verdict_tables import print_judges, print_own_verdicts, print_repeats, print_scores
from cotrail.common.humanize import count, percent
from cotrail.core.history import shown_ends
from cotrail.core.money import spent_line
from cotrail.services.results import comparing, plans, scoring
from cotrail.services.results.compared_questions import DifferingQuestion
from cotrail.services.results.comparison import ComparedPair, Comparison
from cotrail.services.results.comparison_tables import comparison_tables
from cotrail.services.results.comparison_words import HAS, design, headline, pair_sentences, shown_score
from cotrail.services.results.plans import RunPlan, planned
from cotrail.services.results.reports.comparison_page import comparison_page, write_front
from cotrail.services.results.reports.sheets import sheet
from cotrail.services.results.scoring import (
    JudgedScores,
    KindTable,
    caveat_of,
    kind_tables,
    score_sentence,
    shown_bounds,
    until_line,
)


def score(
    run: RunName,
    *,
    every: Annotated[bool, option("score.all")] = False,
    by_search: Annotated[bool, option("score.searches")] = False,
    json: Json = False,
) -> None:
    """Print a run's main scores with 95 % confidence intervals, in percent; --json has them as shares of 1.

    A question that isn't finished counts 0, so a run under way scores low; one that was cancelled, or left over by a
    budget, counts nowhere. Below them is what judges say of the run. A
    judge's own run has shares of verdicts in their place.
    """
    if by_search:
        _print_searches(run, json=json)
        return
    scores = scoring.show_scores(run)
    if output.in_json(scores, json=json):
        return
    screen = output.console()
    if scores.verdicts:
        screen.print(f"{scores.run}: {scores.finished:,} of {count(scores.questions, 'question')} finished")
        print_own_verdicts(screen, scores.verdicts)
        return
    _print(screen, scores, every=every)
    for line in plans.show_reporting(scores.run):
        screen.print(line, style="dim")
    if every:
        _print_further(screen, scores)
    else:
        screen.print("--all has every metric, kinds of questions, and how the intervals are made.", style="dim")


SEARCH_COLUMNS = ("search", "list", "questions", "Recall@5", "Recall@10", "NDCG@10", "MRR")


def _print_searches(run: str, *, json: bool) -> None:
    """Prints how far each search found the gold paragraphs."""
    scores = scoring.show_searches(run)
    if output.in_json(scores, json=json):
        return
    if not scores:
        output.console().print("No question of this run has gold paragraphs to compare with.")
        return
    rows = []
    for each in scores:
        search = "all" if each.search is None else str(each.search)
        means = (each.recall_at_5, each.recall_at_10, each.ndcg_at_10, each.mrr)
        rows.append([search, each.list, f"{each.questions:,}", *map(percent, means)])
    output.print_rows(
        output.console(),
        [output.Column(title=title, right=place > 1) for place, title in enumerate(SEARCH_COLUMNS)],
        rows,
    )


def _print(screen: Console, scores: JudgedScores, *, every: bool) -> None:
    """Prints the metrics, what judges say, what ended the questions, and the scores of all repeats together."""
    screen.print(output.heading(score_sentence(scores)), soft_wrap=not screen.is_terminal)
    if scores.until:
        screen.print(until_line(scores.until, scores.questions))
    print_scores(screen, scores, every=every)
    if scores.judges:
        screen.print()
        print_judges(screen, scores.judges)
        screen.print()
    if scores.ends:
        screen.print(f"ended by: {shown_ends(scores.ends)}")
    if scores.spent:
        screen.print(spent_line(scores.spent))
    if scores.repeats:
        screen.print()
        print_repeats(screen, scores.repeats)


def _print_further(screen: Console, scores: JudgedScores) -> None:
    """Prints what the intervals promise, and the scores by kinds of questions."""
    screen.print(caveat_of(scores), style="dim")
    for table in kind_tables(scores):
        screen.print()
        _print_kinds(screen, table)
        if table.note:
            screen.print(table.note, style="dim")


def _print_kinds(screen: Console, table: KindTable) -> None:
    columns = output.titled(table.sort, "questions", *table.metrics, right=("questions",))
    rows = []
    for row in table.rows:
        means = (
            f"{percent(mean)} ({shown_bounds(name, interval)})" if interval else percent(mean)
            for name, (mean, interval) in zip(table.metrics, row.means, strict=True)
        )
        rows.append([row.kind, f"{row.questions:,}", *means])
    output.print_rows(screen, columns, rows)


def plan(run: RunName, *, json: Json = False) -> None:
    """Show a run's plan, sealed before its first step, and where the run departed from it.

    Its digest, published before results are known, shows later that they didn't decide what was asked and reported.
    """
    described = plans.show_plan(run)
    if output.in_json(described, json=json):
        return
    _print_plan(output.console(), described)


def _print_plan(screen: Console, described: RunPlan) -> None:
    screen.print(f"{described.run}: plan {described.digest or 'none'}", soft_wrap=True)
    table = output.grid("dim", "")
    for name, value in planned(described):
        table.add_row(name, value)
    screen.print(table)
    if described.plan is None:
        return
    for title, texts in (("Deviations", described.deviations or ("none",)), ("Remarks", described.remarks)):
        _print_list(screen, title, texts)


def _print_list(screen: Console, title: str, texts: Sequence[str]) -> None:
    if texts:
        screen.print()
        screen.print(output.heading(title))
    for text in texts:
        screen.print(f"  {text}", soft_wrap=True)


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
    with output.console(stderr=True).status("comparing…") as status:
        comparison = comparing.compare_runs(
            runs, against=against, metrics=metric or (), repeats=repeats, tell=lambda words: status.update(f"{words}…")
        )
    if html:
        output.write_text(html, comparison_page(comparison), "choose another --html")
    if figure:
        write_front(comparison, figure)
    if output.in_json(comparison, json=json):
        return
    screen = output.console()
    _print_comparison(screen, comparison, every=every)
    for path in (html, figure):
        if path:
            screen.print(f"Wrote {path}.", soft_wrap=True)


def _print_comparison(screen: Console, comparison: Comparison, *, every: bool) -> None:
    screen.print(output.heading(headline(comparison)), soft_wrap=not screen.is_terminal)
    for sentence in pair_sentences(comparison):
        screen.print(f"  {sentence}", soft_wrap=not screen.is_terminal)
    if every or not comparison.is_fixed:  # an open run is read with what that means
        for sentence in design(comparison):
            screen.print(Text(sentence, style="dim"), soft_wrap=not screen.is_terminal)
    tables = comparison_tables(comparison)
    output.print_tables(map(sheet, tables if every else tables[:1]), screen)
    if not every:
        screen.print("--all has every table, how they were made, and the questions that differ.", style="dim")
        return
    for pair in comparison.pairs:
        _print_questions(screen, comparison, pair)


def _print_questions(screen: Console, comparison: Comparison, pair: ComparedPair) -> None:
    """The first few questions that each of two runs answered better."""
    first, second = (comparison.run(run_id).name for run_id in (pair.first, pair.second))
    screen.print()
    screen.print(
        output.heading(f"{first} and {second}: {count(len(pair.outcomes.ties), 'question')} equal"), soft_wrap=True
    )
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
