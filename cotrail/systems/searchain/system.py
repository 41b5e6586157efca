"""Search-in-the-Chain: chains of queries that retrieval verifies and completes (Xu et al., 2023, algorithm 1)."""

from typing import Any

from msgspec.structs import replace

from cotrail.core.demonstrations import Shots
from cotrail.core.ports.embedder import EMBEDDER
from cotrail.core.ports.entailer import ENTAILER
from cotrail.core.ports.extractor import EXTRACTOR
from cotrail.core.ports.rater import DUPLICATE_RATER
from cotrail.core.ports.role import EngineRole
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.systems.searchain.chain_of_query import read_chain
from cotrail.systems.searchain.interaction import traverse
from cotrail.systems.searchain.marks import stated, without_marks
from cotrail.systems.searchain.prompts import chain_prompt, feedback
from cotrail.systems.searchain.settings import SearChainSettings, SearChainSettings1
from cotrail.systems.searchain.tracing import cite, trace
from cotrail.systems.searchain.tree import GrowingTree, Node, Tree
from cotrail.systems.searchain.writing import note_end, write
from cotrail.systems.spec import Needs, SystemSpec


def searchain(question: Question, shots: Shots, settings: SearChainSettings) -> System:
    """Have the model write chains until retrieval corrects and completes no node, then the final content."""
    tree = GrowingTree(keeps_unanswered=not settings.is_first)
    chat = chain_prompt(question, shots, settings)
    root: Node | None = None
    while tree.rounds < settings.rounds:
        if root is not None:
            chat = chat.add(feedback(question, root, tree.document_of(root), settings))
        written = yield from write(chat, settings.max_chain_tokens, settings)
        chat = chat.wrote(written.text)
        chain = read_chain(
            written.text,
            round=tree.rounds + 1,
            most=settings.max_queries,
            answers=settings.node_answers,
            final_is_last=settings.is_first,
        )
        nodes = tree.grow(chain, root)
        note_end(written, tree.rounds, tree)
        root = (yield from traverse(nodes, tree, settings)) if settings.retrieve else None
        if root is None:
            break
    traced = (yield from trace(chat, question, tree, settings)) if settings.tracing and tree.path else ""
    if not traced and settings.retrieve and not settings.is_first:
        cite(tree.final.text, tree.final.round, tree.cited(tree.final), tree)
    if not traced and not tree.final.text and chain.pairs:
        tree.record(tree.rounds, "no final content", written.text)
    # A model that leaves out the tag has answered all the same.
    return answer(traced or tree.final.text or chain.rest, tree, settings)


def answer(final: str, tree: GrowingTree, settings: SearChainSettings) -> Answer:
    """The final content as the answer, with the path as its chain of thought."""
    path = tuple(tree.path.values())
    return Answer(
        text=without_marks(final),
        sentences=tuple(f"{query} {answer}" if answer else query for query, answer in tree.pairs),
        paragraphs=tuple(tree.documents.values()),
        details=Tree(
            nodes=tuple(tree.nodes),
            path=tuple(node.number for node in path),
            final=final,
            stated=stated(final),
            marks=tree.marks,
            oddities=tuple(tree.oddities),
            rounds=tree.rounds,
            reader=settings.reader if settings.reads else "",
            duplicates=settings.duplicates if settings.retrieve else "",
        ),
    )


_READERS: dict[str | None, tuple[EngineRole, ...]] = {"extractor": (EXTRACTOR,)}
# Runs that compare questions by embeddings have always pinned an entailer too.
_COMPARING: dict[str, tuple[EngineRole, ...]] = {"embedder": (EMBEDDER, ENTAILER), "rater": (DUPLICATE_RATER,)}


def needs(settings: SearChainSettings) -> Needs:
    """Conversations, a corpus, and the models that read answers and find duplicates; only the first without retrieval.

    The language model as a reader has to tell the probabilities of its tokens.
    """
    if not settings.retrieve:
        return Needs(prompt=True, capabilities=frozenset({"turns"}))
    reader = settings.reader if settings.reads else None
    return Needs(
        prompt=True,
        corpus=True,
        engines=_READERS.get(reader, ()) + _COMPARING.get(settings.duplicates, ()),
        capabilities=frozenset({"turns", "scores"}) if reader == "model" else frozenset({"turns"}),
    )


def released(*, instructed: bool) -> dict[str, Any]:  # noqa: ARG001 - see `Released`
    """The settings by which the loop follows the authors' code (`SearChain_w_IR.py`)."""
    return {
        "reader": "extractor",
        "readings": "any",
        "duplicates": "rater",
        "node_answers": "line",
        "tracing": False,
        "stop": (),
    }


SPEC = SystemSpec(
    name="searchain",
    version=2,
    title="SearChain",
    paper="Xu et al., 2023, https://arxiv.org/abs/2304.14732",
    ablations={
        "w/o IR (table 1)": {"retrieve": False},
        "w/o Verification (table 1)": {"verify": False},
        "w/o Completion (table 1)": {"complete": False},
        "without a last turn that traces the path": {"tracing": False},
    },
    settings=SearChainSettings,
    open=searchain,
    needs=needs,
    released=released,
    details=Tree,
)

SPECS = (replace(SPEC, version=1, settings=SearChainSettings1), SPEC)
