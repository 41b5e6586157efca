"""Trees of reasoning, written as a word for each chain and a letter for each of its nodes."""

from collections.abc import Sequence
from typing import Literal

from cotrail.systems.searchain.tree import Mark, Node, Tree

SOURCES: dict[str, Literal["model", "corrected", "completed"] | None] = {
    "m": "model",
    "c": "corrected",
    "f": "completed",
    "d": None,
    "-": None,
}
"""The sources of nodes by their letters; d: a duplicate, -: behind the round's feedback."""


def tree(chains: str, *, path: Sequence[int] | None = None, final: str = "", marks: Sequence[Mark] = ()) -> Tree:
    """A tree whose chains begin at the last corrected or completed node before them, documents named `d<number>`.

    path: the nodes that were looked at, unless given.
    """
    nodes: list[Node] = []
    begun = None
    for round_, letters in enumerate(chains.split(), start=1):
        parent = begun
        for letter in letters:
            number = len(nodes)
            nodes.append(_node(letter, number, round_, parent))
            parent = number
            begun = number if letter in "cf" else begun
    return Tree(
        nodes=tuple(nodes),
        path=tuple(node.number for node in nodes if node.source) if path is None else tuple(path),
        final=final,
        stated="",
        marks=tuple(marks),
        oddities=(),
        rounds=len(chains.split()),
        reader="a reader",
        duplicates="equal words",
    )


def mark(text: str, *nodes: int) -> Mark:
    return Mark(text=text, nodes=nodes)


def _node(letter: str, number: int, round_: int, parent: int | None) -> Node:
    source = SOURCES[letter]
    return Node(
        number=number,
        round=round_,
        parent=parent,
        query=f"Query {number}?",
        answer="" if letter == "f" else f"answer {number}",
        unsolved=letter == "f",
        source=source,
        duplicate=letter == "d",
        extracted=f"extracted {number}" if source else "",
        confidence=float(number) if source else None,
        paragraph=f"d{number}" if source else None,
    )
