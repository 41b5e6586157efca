"""Search-in-the-Chain: chains of queries that retrieval verifies and completes (Xu et al., 2023, algorithm 1).

Whether an answer is consistent with what was read from its document (Search-in-the-Chain, section 3.2).

Messages of the model, verbatim, and the last one, which traces the path (Search-in-the-Chain, section 3.2).
"""

from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from cotrail.common.answer_normalization import contained, normalized, rouge_l
from cotrail.core.actions.embed import Embed, Rate
from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.answer_extraction import stated_answer
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.generation import Capability
from cotrail.core.ports.encoders import DUPLICATE_RATER, EMBEDDER, ENTAILER
from cotrail.core.ports.role import EngineRole
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Paragraph, Question
from cotrail.core.results import Embedded, Generated, Rated, Retrieved
from cotrail.core.system import Answer, Part, System, expect
from cotrail.systems.parts.document_reading import Reading, read_document, reader_capabilities, reader_engines
from cotrail.systems.parts.rules import Limited, StepBound
from cotrail.systems.parts.searching import query_words
from cotrail.systems.parts.steps import in_parallel, last_step
from cotrail.systems.searchain import prompts
from cotrail.systems.searchain.chain_of_query import MOST_CHARACTERS, read_chain
from cotrail.systems.searchain.prompts import SearChainSettings
from cotrail.systems.searchain.tree import GrowingTree, Node, Source, Tree
from cotrail.systems.spec import Needs, SystemSpec, description

_COMPARING_KINDS = {"embedder": "embed", "rater": "rate"}


def step_bounds(question: Question, settings: SearChainSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: every query of every chain is searched for and read, and stays in the conversation."""
    rounds = settings.rounds if settings.retrieve else 1
    own_words = len(prompts.own_prompt(settings).split())
    shown = own_words + rounds * (settings.max_chain_tokens + settings.max_paragraph_words)
    form = AnswerForm.PROMPT
    chains = StepBound(kind="reason", times=rounds, output=settings.max_chain_tokens, words=shown, form=form)
    final = StepBound(kind="reason", times=1, output=settings.max_final_tokens, words=shown, form=form)
    steps = (chains, *([final] if settings.tracing else ()))
    return (*steps, *_looked_up(rounds * settings.max_queries, settings)) if settings.retrieve else steps


def _looked_up(queries: int, settings: SearChainSettings) -> tuple[StepBound, ...]:
    """The steps that look up so many queries."""
    kinds = ["retrieve", *([_COMPARING_KINDS[settings.duplicates]] if settings.duplicates in _COMPARING_KINDS else ())]
    words, output = settings.max_paragraph_words, settings.max_answer_tokens
    reads = StepBound(kind="read", times=queries, output=output, words=words)
    if settings.reads and settings.reader == "extractor":
        kinds.append("extract")
    searches = tuple(StepBound(kind=kind, times=queries) for kind in kinds)
    return (*searches, reads) if settings.reads and settings.reader == "model" else searches


def write(chat: Prompt, max_tokens: int, settings: SearChainSettings) -> Part[Generated]:
    """The model's next message, as far as the most tokens reach or to a stop string."""
    return expect((yield _message(chat, max_tokens, settings)), Generated)


def _message(chat: Prompt, max_tokens: int, settings: SearChainSettings) -> Reason:
    return Reason(
        prompt=chat, max_tokens=max_tokens, until="stop", stop=settings.stop, temperature=settings.temperature
    )


def note_end(message: Generated, round: int, tree: GrowingTree) -> None:  # noqa: A002
    """Record where a message was cut off, by the token limit or before a further example."""
    if message.ended == "length":
        tree.record(round, "cut", message.text[-MOST_CHARACTERS:])
    if message.ended == "stop":
        tree.record(round, "further example", message.stop)


def trace(chat: Prompt, question: Question, tree: GrowingTree, settings: SearChainSettings) -> Part[str]:
    """The final content, for which the model is asked in one more turn, and whose marks the tree takes."""
    path = tuple(tree.path.values())
    chat = chat.add(prompts.final_prompt(question, tree.pairs, settings))
    message = expect((yield from last_step(_message(chat, settings.max_final_tokens, settings))), Generated)
    turn = tree.rounds + 1
    chain = read_chain(message.text, round=turn, most=settings.max_queries)
    if chain.final is None:
        tree.record(turn, "no final content", message.text)
    note_end(message, turn, tree)
    final = chain.final or chain.rest
    cite(final, turn, dict(enumerate(path, start=1)), tree)
    if final and not tree.marks:
        tree.record(turn, "no marks", final)
        tree.marks = prompts.parts_by_answers(final, path)
    return final


def cite(final: str, round: int, cited: Mapping[int, Node], tree: GrowingTree) -> None:  # noqa: A002
    """Have the tree take the marks of a final content; cited: the nodes by the numbers of marks."""
    tree.marks, unknown = prompts.marked_parts(final, cited)
    for mark in unknown:
        tree.record(round, "unknown mark", mark)


MOST_COMPARED_WORDS = 1000
"""How many words of either text ROUGE-L compares: its time grows with the product of the lengths."""


def differs(extracted: str, answer: str, document: Paragraph, settings: SearChainSettings) -> bool:
    """Return whether the model's answer to a query isn't consistent with the document retrieved for it.

    extracted: what the reader read from the document; where that is nothing, nothing contradicts the answer.
    """
    if not normalized(extracted):
        return False
    if settings.has_long_answers:
        return rouge_l(_cut(answer), _cut(document.text)) <= settings.alpha
    return not contained(extracted, answer)


def _cut(text: str) -> str:
    return " ".join(text.split()[:MOST_COMPARED_WORDS])


def searchain(question: Question, shots: Shots, settings: SearChainSettings) -> System:
    """Have the model write chains until retrieval corrects and completes no node, then the final content."""
    tree = GrowingTree()
    chat = prompts.chain_prompt(question, shots, settings)
    root: Node | None = None
    with Limited() as end:
        while tree.rounds < settings.rounds:
            if root is not None:
                chat = chat.add(prompts.feedback(question, root, tree.document_of(root), settings))
            message = yield from write(chat, settings.max_chain_tokens, settings)
            chat = chat.wrote(message.text, carried=message.carried)
            chain = read_chain(
                message.text, round=tree.rounds + 1, most=settings.max_queries, answers=settings.node_answers
            )
            nodes = tree.grow(chain, root)
            note_end(message, tree.rounds, tree)
            root = (yield from traverse(nodes, tree, settings)) if settings.retrieve else None
            if root is None:
                break
        end.limit = "" if root is None else "rounds"
    traced = (yield from trace(chat, question, tree, settings)) if settings.tracing and tree.path else ""
    if not traced and settings.retrieve:
        cite(tree.final.text, tree.final.round, tree.cited(tree.final), tree)
    if not traced and not tree.final.text and chain.pairs:
        tree.record(tree.rounds, "no final content", message.text)
    # A model that leaves out the tag has answered all the same.
    return answer(traced or tree.final.text or chain.rest, tree, settings, end.limit)


class LookUp(Struct, frozen=True):
    """What retrieval says about a query: the best document, None where there is none, and what was read from it."""

    document: Paragraph | None = None
    reading: Reading | None = None


def traverse(chain: tuple[Node, ...], tree: GrowingTree, settings: SearChainSettings) -> Part[Node | None]:
    """Verify and complete the nodes of a chain in their order; returns the first that needs feedback, None if none."""
    ahead = (yield from look_ahead(chain, tree, settings)) if settings.ahead else {}
    for node in chain:
        if node.unsolved and not settings.complete:
            continue
        # By the paper duplicates of unsolved queries are skipped too; a query that stays unsolved would end it all.
        if not node.unsolved and (yield from is_duplicate(node.query, tree.asked, settings)):
            tree.set(replace(node, duplicate=True))
            continue
        evidence = ahead[node.number] if node.number in ahead else (yield from look_up(node, settings))
        looked_at = judged(node, evidence, settings)
        tree.set(looked_at, evidence.document)
        if looked_at.unsolved or looked_at.source == "corrected":
            return looked_at
    return None


def look_up(node: Node, settings: SearChainSettings) -> Part[LookUp]:
    """Search for a node's query, and read the best document where its answer decides anything."""
    result = expect((yield Retrieve(query=query_words(node.query), count=1)), Retrieved)
    if not result.hits:
        return LookUp()
    document = result.hits[0].paragraph
    if not node.unsolved and not settings.verify:
        return LookUp(document)
    return LookUp(document, (yield from read_document(node.query, document, settings)))


def look_ahead(chain: tuple[Node, ...], tree: GrowingTree, settings: SearChainSettings) -> Part[Mapping[int, LookUp]]:
    """What retrieval says about all nodes that may be looked at, in parallel."""
    nodes: list[Node] = []
    for node in chain:
        if node.unsolved and not settings.complete:
            continue
        earlier = (*tree.asked, *(each.query for each in nodes))
        if node.unsolved or not any(same_query(node.query, query) for query in earlier):
            nodes.append(node)
        if node.unsolved:
            break
    evidence = yield from in_parallel(look_up(node, settings) for node in nodes)
    return {node.number: each for node, each in zip(nodes, evidence, strict=True)}


def judged(node: Node, evidence: LookUp, settings: SearChainSettings) -> Node:
    """The node with what retrieval says about it, and whose answer counts."""
    document, reading = evidence.document, evidence.reading
    return replace(
        node,
        source=_source(node, evidence, settings),
        extracted="" if reading is None else reading.text,
        confidence=None if reading is None else reading.confidence,
        paragraph=None if document is None else document.digest,
        discarded=UNSET if reading is None else reading.discarded or UNSET,
    )


def _source(node: Node, evidence: LookUp, settings: SearChainSettings) -> Source | None:
    document, reading = evidence.document, evidence.reading
    if node.unsolved:
        return None if document is None else "completed"
    if document is None or reading is None or not settings.verify or reading.confidence <= settings.theta:
        return "model"
    return "corrected" if differs(reading.text, node.answer, document, settings) else "model"


def is_duplicate(query: str, earlier: Sequence[str], settings: SearChainSettings) -> Part[bool]:
    """Whether a query asks what an earlier one asked; no model is asked about a query that equals one."""
    if any(same_query(query, each) for each in earlier):
        return True
    if not earlier or settings.duplicates == "equal":
        return False
    if settings.duplicates == "rater":
        rated = expect((yield Rate(by="duplicate", text=query, others=tuple(earlier))), Rated)
        return any(score > settings.least_rating for score in rated.scores)
    compared = expect((yield Embed(sentences=(query, *earlier))), Embedded)
    return any(similarity >= settings.least_similarity for similarity in compared.similarities[0][1:])


def same_query(one: str, other: str) -> bool:
    """Return whether two queries are equal after normalization; one without words equals only itself."""
    return one == other or normalized(one) == normalized(other) != ""


def answer(final: str, tree: GrowingTree, settings: SearChainSettings, limit: str) -> Answer:
    """The final content as the answer, with the path as its chain of thought; limit: see `Answer`."""
    path = tuple(tree.path.values())
    return Answer(
        text=prompts.without_marks(final),
        limit=limit,
        sentences=tuple(f"{query} {answer}" if answer else query for query, answer in tree.pairs),
        paragraphs=tuple(tree.documents.values()),
        details=Tree(
            nodes=tuple(tree.nodes),
            path=tuple(node.number for node in path),
            final=final,
            stated=stated_answer(" ".join(prompts.without_marks(final).split())) or "",
            marks=tree.marks,
            oddities=tuple(tree.violations),
            rounds=tree.rounds,
            reader=settings.reader if settings.reads else "",
            duplicates=settings.duplicates if settings.retrieve else "",
        ),
    )


# Runs that compare questions by embeddings have always pinned an entailer too.
_COMPARING: dict[str, tuple[EngineRole, ...]] = {"embedder": (EMBEDDER, ENTAILER), "rater": (DUPLICATE_RATER,)}


def run_needs(settings: SearChainSettings) -> Needs:
    """Conversations, a corpus, and the models that read answers and find duplicates; only the first without retrieval.

    The language model as a reader has to tell the probabilities of its tokens, unless its `confidence` needs none.
    """
    if not settings.retrieve:
        return Needs(words={prompts.PROMPT: prompts.own_prompt(settings)}, capabilities=frozenset({"turns"}))
    reader: frozenset[Capability] = reader_capabilities(settings) if settings.reads else frozenset()
    return Needs(
        words={prompts.PROMPT: prompts.own_prompt(settings)},
        corpus=True,
        engines=(reader_engines(settings) if settings.reads else ()) + _COMPARING.get(settings.duplicates, ()),
        capabilities=frozenset({"turns", *reader}),
    )


SPEC = SystemSpec(
    **description("searchain"),
    settings=SearChainSettings,
    open=searchain,
    needs=run_needs,
    # The loop follows the authors' code (`SearChain_w_IR.py`).
    released={
        "reader": "extractor",
        "readings": "any",
        "duplicates": "rater",
        "node_answers": "line",
        "tracing": False,
        "stop": (),
    },
    details=Tree,
    step_bounds=step_bounds,
)
