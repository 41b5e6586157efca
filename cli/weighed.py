"""Weighed evidence and answers on the terminal."""

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.output import grid
from cotrail.common.humanize import cut
from cotrail.common.printable_text import one_line
from cotrail.common.short_digests import shortened
from cotrail.core.paragraphs import Paragraph
from cotrail.faithfulness.weighing import ChosenFact, WeighedChain, Weighing
from models.queries.traces import TracedStep

NAME = 60
"""The characters of a sentence without a title that name it."""


def name_of(paragraph: Paragraph) -> str:
    """The paragraph's title; a knowledge source's sentence is its own name."""
    return paragraph.title or cut(paragraph.text, NAME)


def compared(step: TracedStep, names: Mapping[str, str]) -> Text | None:
    """The result of an embed or an entail step; None where it has none.

    names: the paragraphs' names by digest.
    """
    if step.entailed is not None:
        found = step.entailed
        shares = f"{found.entailment:.2f} entailed, {found.neutral:.2f} neutral, {found.contradiction:.2f} contradicted"
        return Text(f"{shares}  by {_named(step.against[0], names)}")
    if step.embedded is None:
        return None
    if not step.against:
        return Text(f"{len(step.compared)} sentences with one another", style="dim")
    row = step.embedded.similarities[0]
    best = max(range(len(row)), key=row.__getitem__)
    return Text(f"{row[best]:.2f} like {_named(step.against[best], names)}, the nearest of {len(row)}")


def weighed(weighing: Weighing, names: Mapping[str, str]) -> RenderableType:
    """Every chain with its sentences' scores, what a variant chose, and every prediction with its weight."""
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
    stated = Text(one_line(chain.prediction) or "no answer stated", style=style)
    table.add_row(str(chain.number + 1), stated, "", "", "", f"{chain.faithfulness:.2f}", "", style=style)
    for each in chain.sentences:
        scores = (f"{value:.2f}" for value in (each.similarity, each.entailment, each.contradiction, each.score))
        evidence = _named(each.evidence, names) if each.evidence else "none found"
        table.add_row("", each.text, *scores, Text(evidence, style="dim"))


def _facts(facts: tuple[ChosenFact, ...], names: Mapping[str, str]) -> Table:
    table = _scored("supporting fact", scores=("E", "C"))
    for fact in facts:
        evidence = _named(fact.evidence, names) if fact.evidence else "none found"
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


def _named(digest: str, names: Mapping[str, str]) -> str:
    return one_line(names.get(digest, shortened(digest)))
