"""Trees of reasoning as they are drawn: what stands below what, and what is said of each node."""

import io

from msgspec.structs import replace
from rich.console import Console

from cli.output import Screen
from cli.reasoned import reasoned
from cotrail.systems.searchain.oddities import Oddity
from cotrail.systems.searchain.tree import Tree
from services.reasoning_trees import ShownChain, shown_tree
from tests.unit.made_trees import mark, tree

TITLES = {"d0": "Bridges", "d1": "Towers", "d4": "Rivers"}
BRANCHED = replace(
    tree("mc- df m", path=(0, 1, 4, 5), final="Ada [1] built it [2].", marks=[mark("Ada", 0, 1), mark("built it")]),
    oddities=(
        Oddity(round=2, what="number", text="[Query]: Who?\nMe?"),
        Oddity(round=4, what="unknown mark", text="[9]"),
    ),
    stated="Ada",
)


def shape(chains: tuple[ShownChain, ...]) -> list[object]:
    """Each chain's round and nodes, each node with what is below it."""
    return [(chain.round, [(each.node.number, shape(each.chains)) for each in chain.nodes]) for chain in chains]


def drawn(of: Tree) -> str:
    out = io.StringIO()
    screen: Console = Screen(file=out, markup=False, emoji=False, highlight=False, width=100)
    screen.print(reasoned(of, TITLES))
    return out.getvalue()


def test_a_chain_stands_below_the_node_whose_feedback_began_it() -> None:
    assert shape(shown_tree(BRANCHED, TITLES).chains) == [
        (1, [(0, []), (1, [(2, [(3, []), (4, [(3, [(5, [])])])])]), (2, [])]),
    ]


def test_a_tree_without_nodes_is_drawn_too() -> None:
    assert shown_tree(tree(""), {}).chains == ()
    assert "final content  none" in drawn(tree(""))


def test_a_node_says_whose_answer_counts_and_why() -> None:
    sources = [each.source for each in shown_tree(tree("mcfd-"), {}).chains[0].nodes]
    assert sources == ["model", "corrected", "completed", "duplicate", "not looked at"]


def test_a_query_for_which_nothing_was_found_is_not_one_that_was_not_looked_at() -> None:
    begun = tree("c m").nodes
    bare = replace(tree("c m"), nodes=(replace(begun[0], source=None), begun[1]))
    assert shown_tree(bare, {}).chains[0].nodes[0].source == "nothing found"


def test_what_is_drawn_has_each_node_with_its_document_and_the_number_that_marks_name() -> None:
    lines = [line.strip(" │├└─") for line in drawn(BRANCHED).splitlines()]
    assert lines[:9] == [
        "question",
        "round 1",
        "[1] Query 0? → answer 0",
        "model · the reader: extracted 0 (0.00) · in Bridges",
        "[2] Query 1? → answer 1",
        "corrected · the reader: extracted 1 (1.00) · in Towers",
        "round 2",
        "Query 3? → answer 3",
        "duplicate",
    ]
    assert "completed · unsolved · the reader: extracted 4 (4.00) · in Rivers" in lines


def test_below_the_tree_is_the_final_content_with_what_its_marks_lead_to() -> None:
    said = [line.rstrip() for line in drawn(BRANCHED).splitlines()]
    assert "final content  Ada [1] built it [2]." in said
    assert "marks          Ada → [1] Bridges, [2] Towers" in said
    assert "               built it → no node" in said
    assert "oddities       round 2: number: [Query]: Who? Me?" in said
    assert "               final content: unknown mark: [9]" in said


def test_a_model_s_text_can_not_draw() -> None:
    node = replace(BRANCHED.nodes[0], query="Who?\x1b[2J\nround 7", answer="[red]Ada")
    said = drawn(replace(BRANCHED, nodes=(node, *BRANCHED.nodes[1:])))
    assert "\x1b" not in said
    assert "[red]Ada" in said
    assert not [line for line in said.splitlines() if line.strip(" │├└─") == "round 7"]
