"""Messages of the model, verbatim, and the last one, which traces the path (Search-in-the-Chain, section 3.2)."""

from collections.abc import Mapping

from cotrail.core.actions.generate import Reason
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Part, expect
from cotrail.systems.parts.steps import last_step
from cotrail.systems.searchain.chain_of_query import read_chain
from cotrail.systems.searchain.format_violations import MOST_CHARACTERS
from cotrail.systems.searchain.marks import marked_parts, parts_by_answers
from cotrail.systems.searchain.prompts import final_prompt
from cotrail.systems.searchain.settings import SearChainSettings
from cotrail.systems.searchain.tree import GrowingTree, Node


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
    chat = chat.add(final_prompt(question, tree.pairs, settings))
    message = expect((yield from last_step(_message(chat, settings.max_final_tokens, settings))), Generated)
    turn = tree.rounds + 1
    chain = read_chain(message.text, round=turn, most=settings.max_queries, final_is_last=settings.is_first)
    if chain.final is None:
        tree.record(turn, "no final content", message.text)
    note_end(message, turn, tree)
    final = chain.final or chain.rest
    cite(final, turn, dict(enumerate(path, start=1)), tree)
    if final and not tree.marks:
        tree.record(turn, "no marks", final)
        tree.marks = parts_by_answers(final, path)
    return final


def cite(final: str, round: int, cited: Mapping[int, Node], tree: GrowingTree) -> None:  # noqa: A002
    """Have the tree take the marks of a final content; cited: the nodes by the numbers of marks."""
    tree.marks, unknown = marked_parts(final, cited)
    for mark in unknown:
        tree.record(round, "unknown mark", mark)
