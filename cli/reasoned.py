"""Trees of reasoning on the terminal."""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Drawing

from cli.output import grid
from cotrail.common.humanize import count
from cotrail.common.printable_text import one_line
from cotrail.systems.searchain.tree import Node, Tree
from services.reasoning_trees import Document, ShownChain, ShownNode, ShownTree, shown_tree

STYLES = {"model": "cyan", "corrected": "yellow", "completed": "magenta"}
"""The colours of the sources; nodes that were not looked at have none."""


def reasoned(tree: Tree, titles: Mapping[str, str]) -> RenderableType:
    """Each round's chain with the sources of its answers, and the final content with what its marks lead to.

    titles: of the paragraphs, by digest.
    """
    shown = shown_tree(tree, titles)
    drawing = Drawing(Text("question", style="bold"), guide_style="dim")
    _add_chains(drawing, shown.chains)
    return Group(drawing, Text(), _outcome(shown))


def _add_chains(drawing: Drawing, chains: tuple[ShownChain, ...]) -> None:
    for chain in chains:
        below = drawing.add(Text(f"round {chain.round}", style="bold"))
        for each in chain.nodes:
            _add_chains(below.add(_node(each)), each.chains)


def _node(each: ShownNode) -> Text:
    style = STYLES.get(each.source, "dim")
    text = Text(_mark(each.document), style="bold").append(f"{one_line(each.node.query)} ", style="not bold")
    text.append(f"→ {one_line(each.node.answer) or 'no answer'}", style=f"not bold {style}")
    text.append(f"\n{each.source}", style=f"not bold {style}")
    return text.append("".join(f" · {fact}" for fact in _facts(each.node, each.document)), style="not bold dim")


def _facts(node: Node, document: Document) -> list[str]:
    confidence = "" if node.confidence is None else f" ({node.confidence:.2f})"
    return [
        *(["unsolved"] if node.unsolved else []),
        *([f"the reader: {one_line(node.extracted) or 'nothing'}{confidence}"] if node.confidence is not None else []),
        *([f"in {one_line(document.title)}"] if document.digest else []),
    ]


def _mark(document: Document) -> str:
    return "" if document.place is None else f"[{document.place}] "


def _outcome(shown: ShownTree) -> Table:
    tree, table = shown.tree, grid("dim", "")
    table.add_row("final content", Text(tree.final or "none"))
    table.add_row("stated answer", tree.stated or "none")
    for number, mark in enumerate(shown.marks):
        named = ", ".join(f"{_mark(each)}{one_line(each.title) or 'no document'}" for each in mark.documents)
        table.add_row("" if number else "marks", f"{one_line(mark.text)} → {named or 'no node'}")
    for number, oddity in enumerate(shown.oddities):
        table.add_row("" if number else "oddities", oddity)
    table.add_row("engines", f"reader {tree.reader or 'none'}, duplicates by {tree.duplicates or 'nothing'}")
    table.add_row("", f"{count(tree.rounds, 'round')}, {count(len(tree.nodes), 'node')}, {len(tree.path)} in the path")
    return table
