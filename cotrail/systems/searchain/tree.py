"""The tree of reasoning (Search-in-the-Chain, section 3): its nodes, the path through it, and what it rests on."""

from collections.abc import Mapping
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from cotrail.common.answer_normalization import normalized
from cotrail.core.questions import Paragraph
from cotrail.systems.searchain.chain_of_query import MOST_VIOLATIONS, ChainOfQuery, FormatViolation, What, quoted

Source = Literal["model", "corrected", "completed"]
"""Where the answer of a node comes from (table 2): the model, whose answer passed; or the search, which corrected it
(verification) or gave it (completion)."""


class Node(Struct, frozen=True, kw_only=True):
    """A query of a chain and its answer.

    number: its place among the nodes of all rounds in the order in which they were written, from 0.
    round: from 1.
    parent: the number of the node before it in its chain; for a chain's first node that of the node whose feedback
        began the round; None for the first of all, whose parent is the question.
    query, answer: as the model wrote them; the answer is empty where it gave none.
    unsolved: whether the model marked the query as one that it can't answer.
    source: None where it wasn't looked at (as a duplicate, behind the round's feedback, without retrieval), and where
        nothing was found for an unsolved query.
    duplicate: whether it asks what an earlier node asked.
    extracted: the answer that the reader read from the supporting document, and its confidence on the scale of logits;
        None where nothing was read.
    discarded: what the reader wrote, where that counts as no answer, since it doesn't stand in the document.
    paragraph: digest of the supporting document; None where there is none.
    """

    number: int
    round: int
    parent: int | None
    query: str
    answer: str
    unsolved: bool
    source: Source | None = None
    duplicate: bool = False
    extracted: str = ""
    confidence: float | None = None
    paragraph: str | None = None
    discarded: str | UnsetType = UNSET

    @property
    def accepted(self) -> str:
        """The answer in R of Algorithm 1: the reader's where it corrected or completed the model's."""
        return self.extracted if self.source in {"corrected", "completed"} else self.answer


class Mark(Struct, frozen=True, kw_only=True):
    """A part of the final content, and the numbers of the nodes that support it."""

    text: str
    nodes: tuple[int, ...]


class Tree(Struct, frozen=True, kw_only=True):
    """All that the model and the searches said about a question.

    nodes: of all rounds, in the order in which they were written.
    path: R of Algorithm 1: the numbers of the nodes that were looked at, in their order; of equal queries the last
        takes the place of the first.
    final: the final content as the model wrote it, with its marks; stated: what it has behind "answer is", empty
        where nothing does.
    marks: the parts of the final content with their nodes.
    oddities: the format violations of the model's texts; the turn of the final content counts as a round more.
    rounds: how many chains the model wrote.
    reader, duplicates: what read the answers and what found duplicates; empty where nothing did.
    """

    nodes: tuple[Node, ...]
    path: tuple[int, ...]
    final: str
    stated: str
    marks: tuple[Mark, ...]
    oddities: tuple[FormatViolation, ...]
    rounds: int
    reader: str
    duplicates: str

    @property
    def marks_are_written(self) -> bool:
        """Return whether the model wrote the marks; if it wrote none, they are found by the nodes' answers."""
        return not any(violation.what == "no marks" for violation in self.oddities)


class FinalContent(Struct, frozen=True):
    """The final content of a chain.

    round: that of the chain; numbered: the nodes by the numbers that the model had given their queries by then.
    """

    text: str = ""
    round: int = 0
    numbered: Mapping[int, Node] = {}


class GrowingTree:
    """A tree while its question is answered.

    nodes: those so far; path: R of Algorithm 1, by query; documents: all that were retrieved, by digest, in that order.
    final: the final content of the last chain that has any; rounds: how many chains there are.
    """

    def __init__(self) -> None:
        self._numbered: dict[int, Node] = {}
        self.nodes: list[Node] = []
        self.path: dict[str, Node] = {}
        self.documents: dict[str, Paragraph] = {}
        self.violations: list[FormatViolation] = []
        self.marks: tuple[Mark, ...] = ()
        self.final = FinalContent()
        self.rounds = 0

    @property
    def asked(self) -> tuple[str, ...]:
        """M of Algorithm 1: the queries that were looked at."""
        return tuple(node.query for node in self.path.values())

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The queries of the path, each with its answer; one without an answer has what the model wrote for it last."""
        answers = {_key(node.query): node.answer for node in self.nodes if node.answer}
        return tuple((node.query, node.accepted or answers.get(key, "")) for key, node in self.path.items())

    def grow(self, chain: ChainOfQuery, root: Node | None) -> tuple[Node, ...]:
        """Add the nodes of the next chain, and return them; root: the node whose feedback it follows."""
        first = len(self.nodes)
        self.rounds += 1
        self.violations += chain.violations
        self.nodes += (
            Node(
                number=number,
                round=self.rounds,
                parent=number - 1 if number > first else None if root is None else root.number,
                query=pair.query,
                answer=pair.answer,
                unsolved=pair.unsolved,
            )
            for number, pair in enumerate(chain.pairs, start=first)
        )
        nodes = tuple(self.nodes[first:])
        self._number(chain, nodes)
        if chain.final:
            self.final = FinalContent(chain.final, self.rounds, dict(self._numbered))
        return nodes

    def _number(self, chain: ChainOfQuery, nodes: tuple[Node, ...]) -> None:
        """Number the nodes as their chain does: one that begins at 1 replaces the chains before it."""
        if chain.numbers[:1] == (1,):
            self._numbered.clear()
        self._numbered |= zip(chain.numbers, nodes, strict=True)

    def set(self, node: Node, document: Paragraph | None = None) -> None:
        """Put what was found out about a node in its place, and into the path if it was looked at."""
        self.nodes[node.number] = node
        if document is not None:
            self.documents[document.digest] = document
        if not node.duplicate:
            self.path[_key(node.query)] = node

    def cited(self, final: "FinalContent") -> Mapping[int, Node]:
        """The nodes of the path by the numbers of a final content's marks."""
        pairs = ((number, self.path.get(_key(node.query))) for number, node in final.numbered.items())
        return {number: node for number, node in pairs if node is not None}

    def document_of(self, node: Node) -> Paragraph | None:
        """The supporting document of a node; None where it has none."""
        return None if node.paragraph is None else self.documents[node.paragraph]

    def record(self, round: int, what: What, text: str) -> None:  # noqa: A002
        """Record a format violation of a round, unless it has as many as are recorded."""
        if sum(each.round == round for each in self.violations) < MOST_VIOLATIONS:
            self.violations.append(FormatViolation(round=round, what=what, text=quoted(text)))


def _key(query: str) -> str:
    return normalized(query) or query
