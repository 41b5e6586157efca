"""Trees of reasoning as they are drawn: what stands below what, and what is said of each node."""

import io

from msgspec.structs import replace
from rich.console import Console

from cotrail.cli.terminal.output import Screen
from cotrail.cli.terminal.shown_steps import LINES, MESSAGE, _beginning, reasoned
from cotrail.services.results.reasoning import ShownChain, shown_tree
from cotrail.systems.searchain.chain_of_query import FormatViolation
from cotrail.systems.searchain.tree import Tree
from tests.unit.made_trees import mark, tree

TITLES = {"d0": "Bridges", "d1": "Towers", "d4": "Rivers"}
BRANCHED = replace(
    tree("mc- df m", path=(0, 1, 4, 5), final="Ada [1] built it [2].", marks=[mark("Ada", 0, 1), mark("built it")]),
    oddities=(
        FormatViolation(round=2, what="number", text="[Query]: Who?\nMe?"),
        FormatViolation(round=4, what="unknown mark", text="[9]"),
    ),
    stated="Ada",
)


def shape(chains: tuple[ShownChain, ...]) -> list[object]:
    """Each chain's round and nodes, each node with what is below it."""
    return [(chain.round, [(each.node.number, shape(each.chains)) for each in chain.nodes]) for chain in chains]


def drawn(of: Tree, *, full: bool = False) -> str:
    out = io.StringIO()
    screen: Console = Screen(file=out, markup=False, emoji=False, highlight=False, width=100)
    screen.print(reasoned(of, TITLES, full=full))
    return out.getvalue()


def test_a_chain_stands_below_the_node_whose_feedback_began_it() -> None:
    assert shape(shown_tree(BRANCHED, TITLES).chains) == [
        (1, [(0, []), (1, [(2, [(3, []), (4, [(3, [(5, [])])])])]), (2, [])])
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
    assert lines[:10] == [
        "question",
        "round 1",
        "[1] Query 0? → answer 0",
        "model · the reader: extracted 0 (0.00) · in Bridges",
        "[2] Query 1? → extracted 1",
        "corrected · the model: answer 1 · the reader: extracted 1 (1.00) · in Towers",
        'round 2  feedback: According to the Reference, the answer for "Query 1?" should be',
        '"extracted 1". You can change your answer',
        "Query 3? → answer 3",
        "duplicate",
    ]
    assert "[3] Query 4? → extracted 4" in lines
    assert "completed · unsolved · the reader: extracted 4 (4.00) · in Rivers" in lines


def test_below_the_tree_is_the_final_content_with_what_its_marks_lead_to() -> None:
    said = [line.rstrip() for line in drawn(BRANCHED).splitlines()]
    assert "final content  Ada [1] built it [2]." in said
    assert "marks          Ada → [1] Bridges, [2] Towers" in said
    assert "               built it → no node" in said
    assert "violations     round 2: number: [Query]: Who? Me?" in said
    assert "               final content: unknown mark: [9]" in said


def test_marks_that_were_found_by_answers_do_not_look_like_the_model_s() -> None:
    odd = (FormatViolation(round=4, what="no marks", text="Ada built it."),)
    assert "found by answers  Ada → [1] Bridges, [2] Towers" in drawn(replace(BRANCHED, oddities=odd))
    assert "found by answers" not in drawn(BRANCHED)


def test_a_round_without_queries_is_shown_where_its_feedback_began_it() -> None:
    begun = replace(tree("mf"), rounds=2)
    below = shown_tree(begun, {}).chains[0].nodes[1].chains
    assert [(chain.round, chain.nodes) for chain in below] == [(2, ())]
    assert below[0].feedback.startswith('According to the Reference, the answer for "Query 1?" should be "extracted 1"')
    assert "no queries" in drawn(begun)


def test_feedback_that_was_not_sent_is_not_shown() -> None:
    assert "told:" not in drawn(tree("mf"))


def test_an_unsolved_query_for_which_nothing_was_found_says_so_in_the_last_round_too() -> None:
    (node,) = tree("f").nodes
    bare = replace(node, source=None, extracted="", confidence=None, paragraph=None)
    assert shown_tree(replace(tree("f", path=(0,)), nodes=(bare,)), {}).chains[0].nodes[0].source == "nothing found"


def test_a_reading_that_is_not_in_the_document_is_shown_as_such() -> None:
    node = replace(BRANCHED.nodes[0], extracted="", discarded="Eve")
    said = drawn(replace(BRANCHED, nodes=(node, *BRANCHED.nodes[1:])))
    assert "model · the reader: Eve (0.00), not in the document · in Bridges" in said


def test_long_texts_are_cut_unless_all_of_them_is_asked_for() -> None:
    long = "term " * 1000
    node = replace(BRANCHED.nodes[0], query=long, answer=long, discarded=long)
    buried = replace(BRANCHED, nodes=(node, *BRANCHED.nodes[1:]), final=long)
    assert len(drawn(buried).splitlines()) < 60
    assert drawn(buried, full=True).count("term") == 4000


def test_of_a_long_message_the_beginning_is_shown_above_the_tree() -> None:
    assert _beginning("Ada.\nEve.") == "Ada.\nEve."
    lines = _beginning("Ada\n" * 1000).splitlines()
    assert (len(lines), lines[-2:]) == (LINES + 1, ["Ada…", f"({4000 - 4 * LINES + 1:,} more characters: --full)"])
    assert len(_beginning("a" * 4_000_000)) < MESSAGE + 60


def test_a_model_s_text_can_not_draw() -> None:
    node = replace(BRANCHED.nodes[0], query="Who?\x1b[2J\nround 7", answer="[red]Ada")
    said = drawn(replace(BRANCHED, nodes=(node, *BRANCHED.nodes[1:])))
    assert "\x1b" not in said
    assert "[red]Ada" in said
    assert not [line for line in said.splitlines() if line.strip(" │├└─") == "round 7"]
