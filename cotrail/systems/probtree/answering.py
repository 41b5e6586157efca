"""Answers to a question of the tree: from memory, from paragraphs, and from the answers below (section 3.2)."""

from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec import Struct

from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import Shots
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Asked, Piece, Prompt, Shown, plain
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Part, expect
from cotrail.systems.parts import prompting
from cotrail.systems.parts.in_parallel import in_parallel
from cotrail.systems.parts.searching import each_found, shown
from cotrail.systems.parts.steps import last_step
from cotrail.systems.parts.token_scores import mean_score
from cotrail.systems.parts.words import own_words, worded
from cotrail.systems.probtree.settings import ProbTreeSettings
from cotrail.systems.probtree.tree import UNKNOWN, Candidate, GrowingTree, Node, Source

OWN = own_words("probtree")

PARAGRAPH = "#{number} {title}\n{text}\n"
NOT_KNOWN = "Unknown"
STATEMENT = "So the answer is:"
STOP = ("\n\n", "\nQ:")

_WORDS: dict[Source, str] = {"closed": "from_memory", "open": "from_paragraphs", "child": "from_children"}


class Answering(Struct, frozen=True):
    """The answering of a tree's questions, each as soon as what it needs is answered."""

    question: Question
    tree: GrowingTree
    shots: Shots
    settings: ProbTreeSettings

    def answer(self, node: Node) -> Part[None]:
        """Have the tree take the answers to a node's question, whose needs are answered."""
        asked, referred = self.tree.asked(node)
        # What an inner question refers to is searched for below it.
        queries = (asked,) if node.children else (asked, *referred)
        parts = (
            *([self._closed(asked)] if self.settings.closed else ()),
            *([self._open(asked, queries)] if self.settings.open else ()),
            *([self._child(asked, node)] if node.children else ()),
        )
        self.tree.nodes[node.number] = node.answered(asked, (yield from in_parallel(parts)))

    def _closed(self, asked: str) -> Part[Candidate]:
        return candidate("closed", expect((yield self._step("closed", asked)), Generated))

    def _open(self, asked: str, queries: Sequence[str]) -> Part[Candidate]:
        found = yield from each_found(queries, self.settings.search)
        known = dict.fromkeys(chain.from_iterable(found))
        self.tree.paragraphs |= known
        step = self._step("open", asked, paragraphs=self._shown(tuple(known)))
        return candidate("open", expect((yield step), Generated))

    def _child(self, asked: str, node: Node) -> Part[Candidate]:
        step = self._step("child", asked, context=self._context(node.children))
        own = candidate("child", expect((yield step), Generated))
        below = [answer.score for _, answer in self.tree.answered(node.children)]
        return own.resting_on(UNKNOWN if node.decomposition is None else node.decomposition, *below)

    def last(self) -> Part[None]:
        """Have the tree take the answer that a limit leaves: from the answers so far, or else from what was found."""
        root, found = self.tree.root, tuple(self.tree.paragraphs)
        context, paragraphs = self._context(range(root.number)), self._shown(found)
        source: Source = "child" if context else "open" if paragraphs else "closed"
        step = self._step(source, root.question, context=context, paragraphs=paragraphs)
        written = expect((yield from last_step(step)), Generated)
        self.tree.nodes[root.number] = root.answered(root.question, (candidate(source, written),))

    def _shown(self, found: tuple[Paragraph, ...]) -> tuple[Shown, ...]:
        return shown(prompting.shown(self.question, found), PARAGRAPH, self.settings.search)

    def _context(self, numbers: Iterable[int]) -> str:
        return "".join(f"{node.asked} {answer.text or NOT_KNOWN}\n" for node, answer in self.tree.answered(numbers))

    def _step(self, source: Source, asked: str, **values: str | Sequence[Piece]) -> Reason:
        words = worded(self.shots, OWN, _WORDS[source], question=Asked(asked), **values)
        return Reason(
            prompt=Prompt(turns=(plain(*words),)),
            max_tokens=self.settings.max_tokens,
            until="stop",
            stop=STOP,
            temperature=self.settings.temperature,
            scored=True,
        )


def candidate(source: Source, written: Generated) -> Candidate:
    """The answer that a chain states, with the mean log probability of what stands before the statement.

    It is unknown where the chain was cut off, states nothing or says so.
    """
    reasons, stated, behind = written.text.rpartition(STATEMENT)
    text = behind.strip().partition("\n")[0].strip().removesuffix(".").rstrip()
    if not stated or not text or written.ended == "length" or NOT_KNOWN in text:
        return Candidate(source=source, text="", score=UNKNOWN, chain=written.text.strip())
    score = mean_score(written, 0, len(reasons.rstrip())) if reasons.strip() else None
    return Candidate(source=source, text=text, score=UNKNOWN if score is None else score, chain=written.text.strip())
