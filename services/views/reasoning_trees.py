"""Trees of reasoning as people see them: each chain below the node whose feedback began it."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from cotrail.common.short_digests import shortened
from cotrail.core.actions.generate import REASON
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion
from cotrail.systems.registry import recorded_system
from cotrail.systems.searchain.format_violations import FormatViolation
from cotrail.systems.searchain.prompts import told
from cotrail.systems.searchain.tree import Node, Tree


class Document(Struct, frozen=True, kw_only=True):
    """The supporting document of a node; the title and the digest are empty where there is none.

    place: of the node in the path, from 1, which is its number in the final content; None where it isn't in the path.
    """

    title: str
    digest: str
    place: int | None


class Fact(Struct, frozen=True, kw_only=True):
    """What else is to be known of a node's answer: `the reader`: `Arlo` (4.60)."""

    name: str
    text: str = ""
    note: str = ""

    def __str__(self) -> str:
        text = f"{self.name}: {self.text}" if self.text else self.name
        return f"{text} {self.note}" if self.note else text


class ShownNode(Struct, frozen=True, kw_only=True):
    """A node; source: in words; chains: those that its feedback began.

    answer: the one that counts, the model's own where nothing was found out about it; empty where there is none.
    """

    node: Node
    answer: str
    source: str
    facts: tuple[Fact, ...]
    document: Document
    chains: "tuple[ShownChain, ...]"


class ShownChain(Struct, frozen=True, kw_only=True):
    """The chain that was written in a round, from 1; it may have no nodes.

    feedback: what the model had been told before; empty in the first round.
    """

    round: int
    feedback: str
    nodes: tuple[ShownNode, ...]


class ShownMark(Struct, frozen=True, kw_only=True):
    """A part of the final content, and the documents that its marks lead to."""

    text: str
    documents: tuple[Document, ...]


class ShownTree(Struct, frozen=True, kw_only=True):
    """A tree; chains: those that begin at the question; violations: of the form, each in a line.

    found_marks: whether the marks were found by the nodes' answers, since the model wrote none.
    """

    tree: Tree
    found_marks: bool
    chains: tuple[ShownChain, ...]
    marks: tuple[ShownMark, ...]
    violations: tuple[str, ...]


def shown_tree(tree: Tree, titles: Mapping[str, str]) -> ShownTree:
    """The tree as it is shown; titles: of paragraphs, by digest."""
    places = {number: place for place, number in enumerate(tree.path, start=1)}
    documents = {node.number: _document(node, places.get(node.number), titles) for node in tree.nodes}
    chains = [_Chain.of(tree, number) for number in range(1, tree.rounds + 1)]
    marks = (ShownMark(text=mark.text, documents=tuple(documents[n] for n in mark.nodes)) for mark in tree.marks)
    return ShownTree(
        tree=tree,
        found_marks=not tree.marks_are_written,
        chains=_below(None, chains, documents),
        marks=tuple(marks),
        violations=tuple(_violation(each, tree.rounds) for each in tree.oddities),
    )


def turns(record: RunRecord, traced: TracedQuestion) -> dict[int, str]:
    """What each message of the model is, by its step: the chain of a round, or the final content.

    Empty for other systems. Of a question without an answer, the last message may be either, and isn't named.
    """
    system = recorded_system(record.system, record.system_version)
    if system is None or system.details is not Tree:
        return {}
    tree = system.details_in(traced.details)
    sequences = [step.sequence for step in traced.steps if step.kind == REASON.name]
    rounds = tree.rounds if isinstance(tree, Tree) else len(sequences) - 1
    labels = {sequence: f"round {number}" for number, sequence in enumerate(sequences[:rounds], start=1)}
    return labels | (dict.fromkeys(sequences[rounds:], "final content") if tree else {})


def _violation(violation: FormatViolation, rounds: int) -> str:
    where = f"round {violation.round}" if violation.round <= rounds else "final content"
    return f"{where}: {violation.what}: {violation.text}"


def _document(node: Node, place: int | None, titles: Mapping[str, str]) -> Document:
    digest = node.paragraph or ""
    return Document(title=titles.get(digest, shortened(digest)), digest=digest, place=place)


class _Chain(Struct, frozen=True):
    """The nodes of a round, and the node whose feedback began it; None: it begins at the question."""

    round: int
    nodes: tuple[Node, ...]
    root: Node | None

    @classmethod
    def of(cls, tree: Tree, round: int) -> "_Chain":  # noqa: A002
        nodes = tuple(node for node in tree.nodes if node.round == round)
        if nodes:
            parent = nodes[0].parent
            return cls(round, nodes, None if parent is None else tree.nodes[parent])
        return cls(round, (), _ending(tree, round - 1))


def _ending(tree: Tree, round: int) -> Node | None:  # noqa: A002
    """The node with whose feedback a round ended: the one that was corrected or completed, or couldn't be."""
    nodes = [node for node in tree.nodes if node.round == round]
    changed = (node for node in nodes if node.source in {"corrected", "completed"})
    return next(changed, next((node for node in nodes if node.unsolved), None))


def _below(node: Node | None, chains: Sequence[_Chain], documents: Mapping[int, Document]) -> tuple[ShownChain, ...]:
    """The chains that stand below a node, or below the question."""
    return tuple(
        ShownChain(
            round=chain.round,
            feedback=told(node) if node else "",
            nodes=tuple(_node(each, chains, documents) for each in chain.nodes),
        )
        for chain in chains
        if chain.root == node
    )


def _node(node: Node, chains: Sequence[_Chain], documents: Mapping[int, Document]) -> ShownNode:
    below, document = _below(node, chains, documents), documents[node.number]
    # A node whose feedback began a round was looked at, and if it has no source, nothing was found for it.
    is_seen = bool(below) or document.place is not None
    unseen = "duplicate" if node.duplicate else "nothing found" if is_seen else "not looked at"
    return ShownNode(
        node=node,
        answer=node.accepted,
        source=node.source or unseen,
        facts=tuple(_facts(node)),
        document=document,
        chains=below,
    )


def _facts(node: Node) -> Iterator[Fact]:
    if node.unsolved:
        yield Fact(name="unsolved")
    if node.source in {"corrected", "completed"} and (node.answer or not node.unsolved):
        yield Fact(name="the model", text=node.answer or "no answer")
    if node.confidence is not None:
        sure = f"({node.confidence:.2f})"
        if node.discarded:
            yield Fact(name="the reader", text=node.discarded, note=f"{sure}, not in the document")
        else:
            yield Fact(name="the reader", text=node.extracted or "nothing", note=sure)
