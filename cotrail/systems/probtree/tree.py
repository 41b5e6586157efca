"""Trees of questions, and the candidates for the answer of each (Cao et al., 2023, section 3)."""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.questions import Paragraph

Source = Literal["closed", "open", "child"]
"""What an answer is from: what the model knows, paragraphs, or the answers to the questions below."""

UNKNOWN = -100.0
"""The score of what isn't known, far below any mean of log probabilities."""

_REFERENCE = re.compile(r"<(\d{1,2})>")


def has_references(question: str) -> bool:
    """Return whether a question needs the answers to its sibling questions, as in `Who founded <1>?`."""
    return _REFERENCE.search(question) is not None


class Candidate(Struct, frozen=True, kw_only=True):
    """An answer to a node's question.

    text: empty where it is unknown. score: of its chain of thought, as a mean of log probabilities; `UNKNOWN` where the
    answer is, and where it stands alone.
    """

    source: Source
    text: str
    score: float
    chain: str

    def resting_on(self, *scores: float) -> "Candidate":
        """The same answer with the mean of its score and these; what is unknown stays so."""
        return replace(self, score=math.fsum((self.score, *scores)) / (1 + len(scores))) if self.text else self


class Node(Struct, frozen=True, kw_only=True):
    """A question of the tree.

    number: its place in post-order, from 0: behind all that is below it.
    question: as it was decomposed; asked: with answers in the places of `<1>`, empty where it wasn't asked.
    children: the numbers of the questions that it was decomposed into; decomposition: the mean log probability of
        these, None where it wasn't decomposed.
    candidates, chosen: its answers, and the number of the one of the highest score; None where it wasn't answered.
    """

    number: int
    question: str
    children: tuple[int, ...] = ()
    decomposition: float | None = None
    asked: str = ""
    candidates: tuple[Candidate, ...] = ()
    chosen: int | None = None

    @property
    def answer(self) -> Candidate | None:
        """The candidate that was chosen."""
        return None if self.chosen is None else self.candidates[self.chosen]

    def answered(self, asked: str, candidates: tuple[Candidate, ...]) -> "Node":
        """The same node with its answers, of which the likeliest is chosen, and the first of equals."""
        chosen = max(range(len(candidates)), key=lambda number: candidates[number].score)
        return replace(self, asked=asked, candidates=candidates, chosen=chosen)


class QuestionTree(Struct, frozen=True, kw_only=True):
    """The questions in post-order; the last one is the question that was asked."""

    nodes: tuple[Node, ...]


class GrowingTree:
    """A tree whose questions are being answered, and the paragraphs that were found, in their order."""

    def __init__(self, question: str) -> None:
        self.paragraphs: dict[Paragraph, None] = {}
        self.grow((Node(number=0, question=question),))

    def grow(self, nodes: tuple[Node, ...]) -> None:
        """Become the tree of these nodes, which are in post-order."""
        self.nodes = list(nodes)
        self._parents = {child: node for node in nodes for child in node.children}

    @property
    def root(self) -> Node:
        """The question that was asked."""
        return self.nodes[-1]

    @property
    def ready(self) -> list[Node]:
        """The questions that can be asked now: what they need is answered, and they aren't."""
        return [
            node
            for node in self.nodes
            if node.answer is None
            and all(self.nodes[number].answer for number in (*node.children, *self.referred(node).values()))
        ]

    def referred(self, node: Node) -> dict[str, int]:
        """The numbers of the siblings of a node before it, by the references such as `<1>` that it has."""
        parent = self._parents.get(node.number)
        siblings = dict(enumerate(parent.children, start=1)) if parent else {}
        found = {match[0]: siblings.get(int(match[1]), node.number) for match in _REFERENCE.finditer(node.question)}
        return {reference: number for reference, number in found.items() if number < node.number}

    def asked(self, node: Node) -> tuple[str, tuple[str, ...]]:
        """A node's question with answers in the places of its references, and these answers."""
        answers = {
            reference: answer.text
            for reference, number in self.referred(node).items()
            if (answer := self.nodes[number].answer)
        }
        question = _REFERENCE.sub(lambda match: answers.get(match[0], match[0]), node.question)
        return question, tuple(answers.values())

    def answered(self, numbers: Iterable[int]) -> Iterator[tuple[Node, Candidate]]:
        """Those of these nodes that are answered, with their answers."""
        return ((node, node.answer) for node in map(self.nodes.__getitem__, numbers) if node.answer)
