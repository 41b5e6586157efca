"""The interaction with retrieval: verification and completion of a chain (Search-in-the-Chain, algorithm 1)."""

from collections.abc import Mapping

from msgspec import UNSET, Struct
from msgspec.structs import replace

from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.paragraphs import Paragraph
from cotrail.core.results import Retrieved
from cotrail.core.system import Part, expect
from cotrail.systems.parts.abreast import abreast
from cotrail.systems.searchain.consistency import differs
from cotrail.systems.searchain.duplicates import is_duplicate, same_query
from cotrail.systems.searchain.reading import Reading, read_document
from cotrail.systems.searchain.settings import SearChainSettings
from cotrail.systems.searchain.tree import GrowingTree, Node, Source

MOST_QUERY_WORDS = 100
"""How many words of a query are searched for: search engines refuse longer ones than a few hundred."""


class Evidence(Struct, frozen=True):
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


def look_up(node: Node, settings: SearChainSettings) -> Part[Evidence]:
    """Search for a node's query, and read the best document where its answer decides anything."""
    query = " ".join(node.query.split()[:MOST_QUERY_WORDS])
    found = expect((yield Retrieve(query=query, count=1)), Retrieved)
    if not found.hits:
        return Evidence()
    document = found.hits[0].paragraph
    if not node.unsolved and not settings.verify:
        return Evidence(document)
    return Evidence(document, (yield from read_document(node.query, document, settings)))


def look_ahead(chain: tuple[Node, ...], tree: GrowingTree, settings: SearChainSettings) -> Part[Mapping[int, Evidence]]:
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
    evidence = yield from abreast(look_up(node, settings) for node in nodes)
    return {node.number: each for node, each in zip(nodes, evidence, strict=True)}


def judged(node: Node, evidence: Evidence, settings: SearChainSettings) -> Node:
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


def _source(node: Node, evidence: Evidence, settings: SearChainSettings) -> Source | None:
    document, reading = evidence.document, evidence.reading
    if node.unsolved:
        return None if document is None else "completed"
    if document is None or reading is None or not settings.verify or reading.confidence <= settings.theta:
        return "model"
    return "corrected" if differs(reading.text, node.answer, document, settings) else "model"
