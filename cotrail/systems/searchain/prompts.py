"""The words of the prompts (Search-in-the-Chain, sections 3.1 and 3.2).

The feedback and the request for the final content follow the sentences that the paper gives. The prompt for chains is
cotrail's own: the paper shows its own only as a picture, and the authors' is under no licence. A run may bring another.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from cotrail.common.answer_normalization import normalized
from cotrail.core.answer_extraction import stated_answer
from cotrail.core.demonstrations import QUESTION, Shots
from cotrail.core.prompts import Asked, Prompt, Shown, Turn, user
from cotrail.core.questions import Paragraph, Question
from cotrail.faithfulness.paper import all_sentences
from cotrail.systems.parts.prompting import chosen_words, filled, own_words
from cotrail.systems.searchain.settings import SearChainSettings
from cotrail.systems.searchain.tree import Mark, Node

# Marks: which parts of a final content which nodes support (Search-in-the-Chain, section 3.2, tracing).

_ONE = r"[\[【]\s{0,3}(?:(?:query|answer|pair)\s{0,3})?\d{1,3}(?:\s{0,3}[,;\u2013-]\s{0,3}\d{1,3}){0,30}\s{0,3}[\]】]"
_MARKS = re.compile(rf"(?:\s{{0,3}}{_ONE}){{1,30}}(?!\s?[:\uff1a])", re.IGNORECASE)
_NUMBERS = re.compile(r"(\d{1,3})(?:\s{0,3}[\u2013-]\s{0,3}(\d{1,3}))?")


def marked_parts(final: str, cited: Mapping[int, Node]) -> tuple[tuple[Mark, ...], tuple[str, ...]]:
    """The parts of a final content by its marks "[n]", and the marks of no node, as written.

    cited: the nodes by the numbers of marks. A part reaches from the mark before it to its own.
    """
    marks, unknown, start = [], [], 0
    for match in _MARKS.finditer(final):
        numbers = tuple(dict.fromkeys(_numbers(match[0], max(cited, default=0))))
        if not cited.keys() >= set(numbers):
            unknown.append(match[0].strip())
        nodes = tuple(dict.fromkeys(cited[number].number for number in numbers if number in cited))
        text = final[start : match.start()].strip(" \t\r\n.,;:")
        start = match.end()
        if nodes and text:
            marks.append(Mark(text=text, nodes=nodes))
    return tuple(marks), tuple(unknown)


def parts_by_answers(final: str, path: Sequence[Node]) -> tuple[Mark, ...]:
    """The sentences of a final content without marks, by the nodes whose answers they contain."""
    answers = [(node.number, answer) for node in path if (answer := normalized(node.extracted or node.accepted))]
    sentences = ((sentence, normalized(sentence)) for sentence in all_sentences(final))
    marks = (
        Mark(text=sentence, nodes=tuple(number for number, answer in answers if answer in words))
        for sentence, words in sentences
    )
    return tuple(mark for mark in marks if mark.nodes)


def without_marks(final: str) -> str:
    """The final content without its marks."""
    return _MARKS.sub("", final).strip()


def stated_finally(final: str) -> str:
    """The answer that a final content states behind "answer is", without marks; empty where it states none."""
    return stated_answer(" ".join(without_marks(final).split())) or ""


def _numbers(marks: str, most: int) -> Iterator[int]:
    """The numbers that marks name; those above `most`, which no node has, as the one above it."""
    for match in _NUMBERS.finditer(marks):
        first, last = (min(int(number), most + 1) for number in (match[1], match[2] or match[1]))
        yield from range(first, last + 1) if first <= last else (first, last)


_OWN = own_words("searchain")
"""The parts of the prompt; a statement is what the final content ends with, by the sort of questions."""

EXAMPLES, EXAMPLES_WITHOUT_RETRIEVAL = _OWN["examples"], _OWN["examples_without_retrieval"]

PROMPT = "prompt"
"""The name of the prompt for chains."""

MARKING = "Mark each part of it with the number of the pair that supports it, as in [1]. "


def chain_prompt(question: Question, shots: Shots, settings: SearChainSettings) -> Prompt:
    """The first turn, which asks for a chain: by the prompt that the run brings or else by cotrail's own."""
    words = chosen_words(shots, {PROMPT: own_prompt(settings)}, PROMPT)
    return Prompt(turns=(user(*filled(words, question=Asked(question.text))),))


def own_prompt(settings: SearChainSettings) -> str:
    """Cotrail's own prompt for chains, with `QUESTION` in the question's place."""
    marked = settings.retrieve and settings.tracing
    ending = f"{_OWN['final_content']} {MARKING if marked else ''}{_OWN[f'statement_{settings.questions}']}"
    unsolved = (_OWN["unsolved_query"],) if settings.retrieve else ()
    examples = EXAMPLES_WITHOUT_RETRIEVAL
    if settings.retrieve:
        examples = EXAMPLES if marked else without_marks(EXAMPLES)
    instructions = "\n".join((_OWN["task"], *unsolved, ending))
    return "\n\n".join((instructions, examples, f"[Question]: {QUESTION}"))


def feedback(question: Question, node: Node, document: Paragraph | None, settings: SearChainSettings) -> Turn:
    """The turn that corrects a node or completes it (section 3.2); of several references the oldest go first."""
    question_piece = Asked(question.text, " and continue constructing the reasoning chain for [Question]: {question}")
    return user(
        feedback_of(node), question_piece, *([] if document is None else [_reference(document, node.round, settings)])
    )


def feedback_of(node: Node) -> str:
    """What the feedback says of the node that it corrects or completes."""
    if node.paragraph is None:
        return f'No Reference was found for "{node.query}". You can ask in another way'
    if not node.extracted:
        return f'The Reference may have the answer for "{node.query}". You can give your answer'
    may = "give" if node.unsolved else "change"
    answered = f'According to the Reference, the answer for "{node.query}" should be "{node.extracted}"'
    return f"{answered}. You can {may} your answer"


def final_prompt(question: Question, pairs: Sequence[tuple[str, str]], settings: SearChainSettings) -> Turn:
    """The turn that asks for the final content (section 3.2, tracing); pairs: queries and answers of the path."""
    numbered = "\n".join(
        f"[Query {number}]: {query}\n[Answer {number}]:" + (f" {answer}" if answer else "")
        for number, (query, answer) in enumerate(pairs, start=1)
    )
    question_piece = Asked(question.text, "[Question]: {question}\n")
    asks = (
        "You can try to generate the final answer for the [Question] by referring to the [Query]-[Answer] pairs, "
        f"starting with [Final Content]. {MARKING}{_OWN[f'statement_{settings.questions}']}\n"
    )
    return user(asks, question_piece, numbered)


def _reference(document: Paragraph, round: int, settings: SearChainSettings) -> Shown:  # noqa: A002
    title = "{title}\n" if document.title else ""
    return Shown(
        paragraph=document,
        form=f"\nReference: {title}{{text}}",
        words=settings.max_paragraph_words,
        yields=max(1, settings.rounds - round + 1),
    )
