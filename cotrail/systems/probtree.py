"""ProbTree: a question's tree, answered from below by the likeliest of several answers (Cao et al., 2023).

Candidates for the answer to a question, as chains of thought state them (Cao et al., 2023, section 3.2).

The decomposition of a question into a tree, as a model writes it (Cao et al., 2023, section 3.1).
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from cotrail.common.humanize import Positive, Temperature
from cotrail.common.printable_text import storable
from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Piece, Prompt, Shown, plain
from cotrail.core.questions import Paragraph, Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, Part, System, expect
from cotrail.systems.parts import prompting
from cotrail.systems.parts.answers import mean_score
from cotrail.systems.parts.prompting import own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound
from cotrail.systems.parts.searching import SearchSettings, each_found, shown
from cotrail.systems.parts.steps import in_parallel, last_step
from cotrail.systems.spec import Needs, SystemSpec, description

Source = Literal["closed", "open", "child"]
"""What an answer is from: what the model knows, paragraphs, or the answers to the questions below."""

UNKNOWN = -100.0
"""The score of what isn't known, far below any mean of log probabilities."""

_REFERENCE = re.compile(r"<(\d{1,2})>")
"""The answer to a sibling question, which a question needs, as in `Who founded <1>?`."""


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


_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"\s*")


class Parts(Struct, frozen=True):
    """The questions that a question is decomposed into, and the mean log probability of their list."""

    questions: tuple[str, ...]
    score: float


NO_PARTS = Parts((), UNKNOWN)


def tree_of(question: str, written: Generated, most: int) -> tuple[Node, ...]:
    """The tree under a question, in post-order, of at most so many nodes.

    The question's own parts are those under it, or else the first ones, since a model may copy it with a difference.
    """
    parts = parts_in(written)
    nodes: list[Node] = []
    room = most - 1

    def plant(asked: str, own: Parts, above: frozenset[str]) -> int:
        nonlocal room
        above |= {asked}
        if _REFERENCE.search(asked) or len(own.questions) > room or above & set(own.questions):
            own = NO_PARTS
        room -= len(own.questions)
        children = tuple(plant(each, parts.get(each, NO_PARTS), above) for each in own.questions)
        score = own.score if children else None
        nodes.append(Node(number=len(nodes), question=asked, children=children, decomposition=score))
        return len(nodes) - 1

    plant(question, parts.get(question, next(iter(parts.values()), NO_PARTS)), frozenset())
    return tuple(nodes)


def parts_in(written: Generated) -> Mapping[str, Parts]:
    """The parts of each question that a text names, before its JSON ends or breaks off."""
    return {
        storable(name.strip()): Parts(_questions(value), UNKNOWN if score is None else score)
        for name, value, start, end in _entries(written.text)
        for score in (mean_score(written, start, end),)
    }


def _questions(value: Any) -> tuple[str, ...]:
    """The questions in a list; none where it holds anything else."""
    asked = value if isinstance(value, list) else ()
    texts = tuple(storable(each.strip()) for each in asked if isinstance(each, str))
    return texts if all(texts) and len(texts) == len(asked) else ()


def _entries(text: str) -> Iterator[tuple[str, Any, int, int]]:
    """The names and values of the first JSON object in a text, and where each value begins and ends."""
    place, separator = text.find("{"), "{"
    while place >= 0 and text[place : place + 1] == separator:
        try:
            name, place = _DECODER.raw_decode(text, _behind_space(text, place + 1))
            place = _behind_space(text, place)
            if not isinstance(name, str) or text[place : place + 1] != ":":
                return
            start = _behind_space(text, place + 1)
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            return
        yield name, value, start, end
        place, separator = _behind_space(text, end), ","


def _behind_space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place


NOT_KNOWN = "Unknown"
STATEMENT = "So the answer is:"


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


OWN = own_words("probtree")

PARAGRAPH = "#{number} {title}\n{text}\n"
STOP = ("\n\n", "\nQ:")

_WORDS: dict[Source, str] = {"closed": "from_memory", "open": "from_paragraphs", "child": "from_children"}

Sources = Literal["both", "closed", "open"]


class ProbTreeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ProbTree."""

    search: SearchSettings = SearchSettings()

    max_questions: Annotated[int, Meta(ge=1, le=100)] = 20
    """The most questions of a tree, its root among them; one that has no room for its parts isn't decomposed."""

    max_tree_tokens: Positive = 512
    """The most tokens of a decomposition."""

    max_tokens: Positive = 256
    """The most tokens of a chain of thought; one that is cut off counts as unknown."""

    temperature: Temperature = 0.0
    """The temperature; the paper has no sampling."""

    sources: Sources = "both"
    """What answers are from, apart from questions below: what the model knows (`closed`), paragraphs that are searched
    for (`open`), or `both`."""

    @property
    def closed(self) -> bool:
        """Return whether questions are answered from what the model knows."""
        return self.sources != "open"

    @property
    def open(self) -> bool:
        """Return whether questions are answered from paragraphs."""
        return self.sources != "closed"


def probtree(question: Question, shots: Shots, settings: ProbTreeSettings) -> System:
    """Decompose the question into a tree, and answer its questions from below, by the likeliest answer to each."""
    tree = GrowingTree(question.text)
    answering = Answering(question, tree, shots, settings)
    with Limited() as end:
        written = expect((yield answering.decomposing()), Generated)
        tree.grow(tree_of(question.text, written, settings.max_questions))
        while tree.root.answer is None:
            yield from in_parallel(answering.answer(node) for node in tree.ready)
    if end.limit:
        yield from answering.last()
    answered = tuple(tree.answered(range(len(tree.nodes))))
    return Answer(
        text=answered[-1][1].text,
        sentences=tuple(f"{node.asked} {answer.text}".strip() for node, answer in answered),
        paragraphs=tuple(tree.paragraphs),
        details=QuestionTree(nodes=tuple(tree.nodes)),
        limit=end.limit,
    )


class Answering(Struct, frozen=True):
    """The answering of a tree's questions, each as soon as what it needs is answered."""

    question: Question
    tree: GrowingTree
    shots: Shots
    settings: ProbTreeSettings

    def decomposing(self) -> Reason:
        """The step that decomposes the question."""
        return self._step("decompose", self.question.text, self.settings.max_tree_tokens)

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
        return candidate("closed", expect((yield self._chain("closed", asked)), Generated))

    def _open(self, asked: str, queries: Sequence[str]) -> Part[Candidate]:
        found = yield from each_found(queries, self.settings.search)
        known = dict.fromkeys(chain.from_iterable(found))
        self.tree.paragraphs |= known
        step = self._chain("open", asked, paragraphs=self._shown(tuple(known)))
        return candidate("open", expect((yield step), Generated))

    def _child(self, asked: str, node: Node) -> Part[Candidate]:
        step = self._chain("child", asked, context=self._context(node.children))
        own = candidate("child", expect((yield step), Generated))
        below = [answer.score for _, answer in self.tree.answered(node.children)]
        return own.resting_on(UNKNOWN if node.decomposition is None else node.decomposition, *below)

    def last(self) -> Part[None]:
        """Have the tree take the answer that a limit leaves: from the answers so far, or else from what was found."""
        root, found = self.tree.root, tuple(self.tree.paragraphs)
        context, paragraphs = self._context(range(root.number)), self._shown(found)
        source: Source = "child" if context else "open" if paragraphs else "closed"
        step = self._chain(source, root.question, context=context, paragraphs=paragraphs)
        written = expect((yield from last_step(step)), Generated)
        self.tree.nodes[root.number] = root.answered(root.question, (candidate(source, written),))

    def _shown(self, found: tuple[Paragraph, ...]) -> tuple[Shown, ...]:
        return shown(prompting.shown(self.question, found), PARAGRAPH, self.settings.search)

    def _context(self, numbers: Iterable[int]) -> str:
        return "".join(f"{node.asked} {answer.text or NOT_KNOWN}\n" for node, answer in self.tree.answered(numbers))

    def _chain(self, source: Source, asked: str, **values: str | Sequence[Piece]) -> Reason:
        return self._step(_WORDS[source], asked, self.settings.max_tokens, **values)

    def _step(self, name: str, asked: str, max_tokens: int, **values: str | Sequence[Piece]) -> Reason:
        words = worded(self.shots, OWN, name, question=Asked(asked), **values)
        return Reason(
            prompt=Prompt(turns=(plain(*words),)),
            max_tokens=max_tokens,
            until="stop",
            stop=STOP,
            temperature=self.settings.temperature,
            scored=True,
        )


def step_bounds(question: Question, settings: ProbTreeSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: every question has three answers at most, and searches for itself and what it refers to."""
    questions, form = settings.max_questions, AnswerForm.PROMPT
    searches = questions + questions * (questions - 1) // 2
    own = {name: len(words.split()) for name, words in OWN.items()}
    paragraphs = questions * settings.search.most_words
    words = max(own.values()) + (paragraphs if settings.open else questions * settings.max_tokens)
    answers = StepBound(kind="reason", times=3 * questions + 1, output=settings.max_tokens, words=words, form=form)
    tree = StepBound(kind="reason", times=1, output=settings.max_tree_tokens, words=own["decompose"], form=form)
    return (tree, answers, *([StepBound(kind="retrieve", times=searches)] if settings.open else ()))


SPEC = SystemSpec(
    **description("probtree"),
    settings=ProbTreeSettings,
    open=probtree,
    needs=lambda settings: Needs(words=OWN, corpus=settings.open, capabilities=frozenset({"scores"})),
    details=QuestionTree,
    step_bounds=step_bounds,
)
