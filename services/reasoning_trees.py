"""Trees of reasoning as people see them: each chain below the node whose feedback began it."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from msgspec import Struct

from cotrail.common.short_digests import shortened
from cotrail.systems.searchain.oddities import Oddity
from cotrail.systems.searchain.tree import Node, Tree


class Document(Struct, frozen=True, kw_only=True):
    """The supporting document of a node; the title and the digest are empty where there is none.

    place: of the node in the path, from 1, which is its number in the final content; None where it isn't in the path.
    """

    title: str
    digest: str
    place: int | None


class ShownNode(Struct, frozen=True, kw_only=True):
    """A node; source: in words; chains: those that its feedback began."""

    node: Node
    source: str
    document: Document
    chains: "tuple[ShownChain, ...]"


class ShownChain(Struct, frozen=True, kw_only=True):
    """The chain that was written in a round, from 1."""

    round: int
    nodes: tuple[ShownNode, ...]


class ShownMark(Struct, frozen=True, kw_only=True):
    """A part of the final content, and the documents that its marks lead to."""

    text: str
    documents: tuple[Document, ...]


class ShownTree(Struct, frozen=True, kw_only=True):
    """A tree; chains: those that begin at the question; oddities: each in a line."""

    tree: Tree
    chains: tuple[ShownChain, ...]
    marks: tuple[ShownMark, ...]
    oddities: tuple[str, ...]


def shown_tree(tree: Tree, titles: Mapping[str, str]) -> ShownTree:
    """The tree as it is shown; titles: of paragraphs, by digest."""
    places = {number: place for place, number in enumerate(tree.path, start=1)}
    documents = {node.number: _document(node, places.get(node.number), titles) for node in tree.nodes}
    marks = (ShownMark(text=mark.text, documents=tuple(documents[n] for n in mark.nodes)) for mark in tree.marks)
    return ShownTree(
        tree=tree,
        chains=_chains(tree.nodes, documents, None),
        marks=tuple(marks),
        oddities=tuple(_oddity(each, tree.rounds) for each in tree.oddities),
    )


def _oddity(oddity: Oddity, rounds: int) -> str:
    where = f"round {oddity.round}" if oddity.round <= rounds else "final content"
    return f"{where}: {oddity.what}: {oddity.text}"


def _document(node: Node, place: int | None, titles: Mapping[str, str]) -> Document:
    digest = node.paragraph or ""
    return Document(title=titles.get(digest, shortened(digest)), digest=digest, place=place)


def _chains(nodes: Sequence[Node], documents: Mapping[int, Document], beginning: int | None) -> tuple[ShownChain, ...]:
    """The chains whose first node stands below this one; None: below the question."""
    rounds = [list(written) for _, written in groupby(nodes, attrgetter("round"))]
    return tuple(
        ShownChain(round=chain[0].round, nodes=tuple(_node(node, nodes, documents) for node in chain))
        for chain in rounds
        if chain[0].parent == beginning
    )


def _node(node: Node, nodes: Sequence[Node], documents: Mapping[int, Document]) -> ShownNode:
    chains = _chains(nodes, documents, node.number)
    # A node whose feedback began a round was looked at, and if it has no source, nothing was found for it.
    unseen = "duplicate" if node.duplicate else "nothing found" if chains else "not looked at"
    return ShownNode(node=node, source=node.source or unseen, document=documents[node.number], chains=chains)
