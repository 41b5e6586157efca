"""Weighed evidence and answers on the terminal."""

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cotrail.cli.terminal.output import grid
from cotrail.common.printable_text import one_line
from cotrail.faithfulness.weighing import ChosenFact, WeighedChain, Weighing
from cotrail.services.views.paragraph_names import named


def weighed(weighing: Weighing, names: Mapping[str, str]) -> RenderableType:
    """Every chain with its sentences' scores, what a variant chose, and every prediction with its weight.

    names: the paragraphs' names by digest.
    """
    parts: list[RenderableType] = [_chains(weighing, names)]
    if weighing.facts:
        parts += [Text(), _facts(weighing.facts, names)]
    return Group(*parts, Text(), _predictions(weighing))


def _chains(weighing: Weighing, names: Mapping[str, str]) -> Table:
    table = _scored("sentence", scores=("M", "E", "C", "f"))
    for chain in weighing.chains:
        _add_chain(table, chain, names, chosen=chain.number == weighing.chosen)
    return table


def _add_chain(table: Table, chain: WeighedChain, names: Mapping[str, str], *, chosen: bool) -> None:
    style = "bold green" if chosen else "bold"
    prediction = Text(one_line(chain.prediction) or "no answer stated", style=style)
    table.add_row(str(chain.number + 1), prediction, "", "", "", f"{chain.faithfulness:.2f}", "", style=style)
    for each in chain.sentences:
        scores = (f"{value:.2f}" for value in (each.similarity, each.entailment, each.contradiction, each.score))
        evidence = named(each.evidence, names) if each.evidence else "none found"
        table.add_row("", each.text, *scores, Text(evidence, style="dim"))


def _facts(facts: tuple[ChosenFact, ...], names: Mapping[str, str]) -> Table:
    table = _scored("supporting fact", scores=("E", "C"))
    for fact in facts:
        evidence = named(fact.evidence, names) if fact.evidence else "none found"
        scores = f"{fact.entailment:.2f}", f"{fact.contradiction:.2f}"
        table.add_row(fact.origin, fact.text, *scores, Text(evidence, style="dim"))
    return table


def _scored(what: str, scores: Sequence[str]) -> Table:
    """A table of texts with their scores and their evidence; texts wrap, scores never do."""
    table = Table(box=None, header_style="dim")
    table.add_column("", no_wrap=True)
    table.add_column(what, overflow="fold")
    for score in scores:
        table.add_column(score, justify="right", no_wrap=True)
    table.add_column("evidence", overflow="fold")
    return table


def _predictions(weighing: Weighing) -> Table:
    table = grid("dim", "bold", "", "dim")
    for number, each in enumerate(weighing.predictions):
        chains = ", ".join(str(chain + 1) for chain in each.chains)
        chains_named = f"chain{'s' * (len(each.chains) > 1)} {chains}" if chains else "no chain"
        table.add_row("" if number else "answers", each.prediction, f"{each.weight:.2f}", chains_named)
    return table
