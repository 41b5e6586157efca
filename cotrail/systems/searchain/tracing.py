"""Tracing: the turn that writes the final content from the path (Search-in-the-Chain, section 3.2)."""

from cotrail.core.prompts import Prompt
from cotrail.core.questions import Question
from cotrail.core.system import Part
from cotrail.systems.searchain.chain_of_query import read_chain
from cotrail.systems.searchain.marks import marked_parts, parts_by_answers
from cotrail.systems.searchain.oddities import MOST_CHARACTERS
from cotrail.systems.searchain.prompts import final_prompt
from cotrail.systems.searchain.settings import SearChainSettings
from cotrail.systems.searchain.tree import GrowingTree
from cotrail.systems.searchain.writing import write


def trace(chat: Prompt, question: Question, tree: GrowingTree, settings: SearChainSettings) -> Part[str]:
    """The final content, for which the model is asked in one more turn, and whose marks the tree takes."""
    path = tuple(tree.path.values())
    written = yield from write(chat.add(final_prompt(question, path, settings)), settings.max_final_tokens, settings)
    turn = tree.rounds + 1
    said = read_chain(written.text, round=turn, most=settings.max_queries)
    if said.final is None:
        tree.record(turn, "no final content", written.text)
    if written.ended == "length":
        tree.record(turn, "cut", written.text[-MOST_CHARACTERS:])
    final = said.final or said.rest
    tree.marks, unknown = marked_parts(final, path)
    for mark in unknown:
        tree.record(turn, "unknown mark", mark)
    if final and not tree.marks:
        tree.record(turn, "no marks", final)
        tree.marks = parts_by_answers(final, path)
    return final
