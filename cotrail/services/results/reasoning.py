"""What the reasoning of an answer rests on: the tree of its chains, and the gold paragraphs that were found."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.printable_text import one_line
from cotrail.common.structs import shortened
from cotrail.core.actions.generate import REASON
from cotrail.core.questions import GoldParagraph, Hit, Paragraph
from cotrail.core.views import name_of
from cotrail.data.datasets.registry import DATASETS, scoring_of
from cotrail.evaluation.metrics.supporting_paragraphs import Fold, Key, counted, fold_of, gold_key, paragraph_keys
from cotrail.models.queries.traces import TracedQuestion, TracedStep
from cotrail.models.records.runs import SubmittedRun
from cotrail.systems.registry import recorded_system
from cotrail.systems.searchain.chain_of_query import FormatViolation
from cotrail.systems.searchain.prompts import feedback_of
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

    feedback: what the model had been shown before; empty in the first round.
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


def turns(record: SubmittedRun, traced: TracedQuestion) -> dict[int, str]:
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
            feedback=feedback_of(node) if node else "",
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


def found_in(question: TracedQuestion) -> dict[str, Paragraph]:
    """All paragraphs that a question found or collected, by digest."""
    paragraphs = (hit.paragraph for step in question.steps for hit in step.hits)
    return {paragraph.digest: paragraph for paragraph in (*paragraphs, *question.paragraphs)}


def names_in(question: TracedQuestion) -> dict[str, str]:
    """The names of all paragraphs that a question found or collected, by digest."""
    return {digest: name_of(paragraph) for digest, paragraph in found_in(question).items()}


def named(digest: str, names: Mapping[str, str]) -> str:
    """The name of a paragraph in one line, or its digest where it has none; names: by digest."""
    return one_line(names.get(digest, shortened(digest)))


class GoldSearch(Struct, frozen=True, kw_only=True):
    """The search that first found a paragraph: the step, its place among the question's searches from 1, and the rank.

    paragraph_id: what was found, in its corpus.
    """

    step: int
    search: int
    rank: int
    query: str
    paragraph_id: str


class FoundGold(Struct, frozen=True, kw_only=True):
    """A gold paragraph.

    id: in its corpus, where the dataset gives it or a search found the paragraph.
    collected: whether it counts as found in the paragraph recall; what a search found may have been left out since.
    found: by which search; None where none found it.
    same_title: where none did, the search that first found another paragraph of its title.
    """

    id: str | None
    title: str
    text: str
    collected: bool
    found: GoldSearch | None = None
    same_title: GoldSearch | None = None

    @property
    def name(self) -> str:
        return self.title or self.text or self.id or ""


def gold_paragraphs(question: TracedQuestion, dataset: str) -> tuple[FoundGold, ...]:
    """The gold paragraphs that count in the question's paragraph recall, in the dataset's order.

    None where the dataset is unknown here: how its paragraphs are compared is unknown too.
    """
    if dataset not in DATASETS:
        return ()
    fold = fold_of(scoring_of(dataset))
    once = {gold_key(each, fold): each for each in reversed(counted(question.gold, question.pinned))}
    if not once:
        return ()
    collected = set(chain.from_iterable(paragraph_keys(each, fold) for each in question.paragraphs))
    places = _first_found(question, fold)
    return tuple(_found(gold, key, places, fold, collected=key in collected) for key, gold in reversed(once.items()))


def where(gold: FoundGold) -> str:
    """In words: where it was found, or what was found in its place."""
    if gold.found:
        aside = "" if gold.collected else ", then left out"
        return f"found by {_search(gold.found)}{aside}"
    if gold.same_title:
        return f"not found; another paragraph of its title by {_search(gold.same_title)}"
    return "not found"


def _search(search: GoldSearch) -> str:
    return f"search {search.search} (step {search.step}), rank {search.rank}"


def _first_found(question: TracedQuestion, fold: Fold) -> dict[Key, GoldSearch]:
    """Where what counts as gold of each key was first found."""
    places: dict[Key, GoldSearch] = {}
    for number, step in enumerate((step for step in question.steps if step.query is not None), start=1):
        for hit in step.hits:
            for key in paragraph_keys(hit.paragraph, fold):
                if key not in places:
                    places[key] = _at(number, step, hit)
    return places


def _found(
    gold: GoldParagraph, key: Key, places: Mapping[Key, GoldSearch], fold: Fold, *, collected: bool
) -> FoundGold:
    place = places.get(key)
    same_title = places.get(gold_key(replace(gold, by="title"), fold)) if gold.title and not place else None
    return FoundGold(
        id=gold.id or (place.paragraph_id if place else None),
        title=gold.title,
        text=gold.text,
        collected=collected,
        found=place,
        same_title=same_title,
    )


def _at(number: int, step: TracedStep, hit: Hit) -> GoldSearch:
    return GoldSearch(
        step=step.sequence, search=number, rank=hit.rank, query=step.query or "", paragraph_id=hit.paragraph.id
    )
