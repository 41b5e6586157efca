"""Trees of reasoning on the terminal."""

import sys
from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Drawing

from cotrail.cli.terminal.output import grid
from cotrail.common.humanize import count
from cotrail.common.printable_text import cut, one_line
from cotrail.services.views.reasoning_trees import Document, ShownChain, ShownNode, ShownTree, shown_tree
from cotrail.systems.searchain.tree import Tree

MOST_CHARACTERS = 200
"""How much of each text is shown, so that the tree can be seen as one."""

STYLES = {"model": "cyan", "corrected": "yellow", "completed": "magenta"}
"""The colours of the sources; nodes that were not looked at have none."""


def reasoned(tree: Tree, titles: Mapping[str, str], *, full: bool = False) -> RenderableType:
    """Each round's chain with the sources of its answers, and the final content with what its marks lead to.

    titles: of the paragraphs, by digest; full: whether long texts are shown whole.
    """
    view, width = shown_tree(tree, titles), sys.maxsize if full else MOST_CHARACTERS
    drawing = Drawing(Text("question", style="bold"), guide_style="dim")
    _add_chains(drawing, view.chains, width)
    return Group(drawing, Text(), _outcome(view, width))


def _add_chains(drawing: Drawing, chains: tuple[ShownChain, ...], width: int) -> None:
    for chain in chains:
        label = Text(f"round {chain.round}", style="bold")
        if chain.feedback:
            label.append(f"  told: {cut(chain.feedback, width)}", style="not bold italic dim")
        below = drawing.add(label)
        if not chain.nodes:
            below.add(Text("no queries", style="dim"))
        for each in chain.nodes:
            _add_chains(below.add(_node(each, width)), each.chains, width)


def _node(each: ShownNode, width: int) -> Text:
    style = STYLES.get(each.source, "dim")
    text = Text(_mark(each.document), style="bold").append(f"{cut(each.node.query, width)} ", style="not bold")
    text.append(f"→ {cut(each.answer, width) or 'no answer'}", style=f"not bold {style}")
    text.append(f"\n{each.source}", style=f"not bold {style}")
    facts = [*map(str, each.facts), *([f"in {each.document.title}"] if each.document.digest else [])]
    return text.append("".join(f" · {cut(fact, width)}" for fact in facts), style="not bold dim")


def _mark(document: Document) -> str:
    return "" if document.place is None else f"[{document.place}] "


def _outcome(view: ShownTree, width: int) -> Table:
    tree, table = view.tree, grid("dim", "")
    table.add_row("final content", Text(cut(tree.final, 3 * width) or "none"))
    table.add_row("stated answer", tree.stated or "none")
    marks = "found by answers" if view.found_marks else "marks"
    for number, mark in enumerate(view.marks):
        documents = ", ".join(f"{_mark(each)}{one_line(each.title) or 'no document'}" for each in mark.documents)
        table.add_row("" if number else marks, f"{cut(mark.text, width)} → {documents or 'no node'}")
    for number, violation in enumerate(view.violations):
        table.add_row("" if number else "violations", violation)
    table.add_row("engines", f"reader {tree.reader or 'none'}, duplicates by {tree.duplicates or 'nothing'}")
    table.add_row("", f"{count(tree.rounds, 'round')}, {count(len(tree.nodes), 'node')}, {len(tree.path)} in the path")
    return table
