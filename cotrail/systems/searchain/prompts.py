"""The settings and the words of the prompts (Search-in-the-Chain, sections 3.1 and 3.2).

The feedback and the request for the final content follow the sentences that the paper gives. The prompt for chains is
cotrail's own: the paper shows its own only as a picture, and the authors' is under no licence. A run may bring another.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta

from cotrail.common.answer_normalization import normalized
from cotrail.common.humanize import Positive, Temperature
from cotrail.core.demonstrations import QUESTION, Shots
from cotrail.core.prompts import Asked, Prompt, Shown, Turn, user
from cotrail.core.questions import Paragraph, Question, QuestionSort
from cotrail.faithfulness.paper import all_sentences
from cotrail.systems.parts.document_reading import DocumentReaderSettings
from cotrail.systems.parts.prompting import chosen_words, filled, own_words
from cotrail.systems.searchain.chain_of_query import AnswerRule
from cotrail.systems.searchain.tree import Mark, Node

Answers = Literal["short", "long"]
Duplicates = Literal["equal", "embedder", "rater"]


class SearChainSettings(DocumentReaderSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Search-in-the-Chain."""

    questions: QuestionSort = "multi-hop"
    """What sort of questions are asked, which decides the words of the prompts; the dataset's own unless given."""

    answers: Answers | None = None
    """How an answer is compared with its document: `short` ones by containment, `long` ones by ROUGE-L; by the sort
    of questions unless given."""

    rounds: Positive = 5
    """How many chains the model writes at most (r_max, section 4.1)."""

    theta: float = 1.5
    """A reader corrects the model only above this confidence, which is on the scale of its logits."""

    alpha: Annotated[float, Meta(ge=0, le=1)] = 0.35
    """A long answer of at most this ROUGE-L isn't consistent with its document."""

    duplicates: Duplicates = "equal"
    """What counts as a query that was asked before: one that is `equal` after normalization, one whose embedding
    has a cosine similarity of `least_similarity` or more, or one that the run's `rater` gives more than
    `least_rating`."""

    least_similarity: Annotated[float, Meta(ge=-1, le=1)] = 0.9
    """The cosine similarity from which on a query was asked before, with the duplicates of the `embedder`."""

    least_rating: float = 0.5
    """The rating above which a query was asked before, with the duplicates of the `rater`."""

    retrieve: bool = True
    """Whether documents are searched for; without it the model answers by a single chain (SearChain w/o IR, table
    1)."""

    verify: bool = True
    """Whether the model is corrected."""

    complete: bool = True
    """Whether queries that it can't answer are answered for it, and not passed over."""

    tracing: bool = True
    """Whether a last turn writes the final content from the path, with marks; else it is that of the last chain,
    for which no marks are asked."""

    node_answers: AnswerRule = "tag"
    """What counts as a query's answer: the text behind its `tag`; or, as in the released code, the next `line` with
    the word "Answer" in it."""

    ahead: bool = False
    """Whether the documents of all queries of a chain are searched for and read at once, and not each after the one
    before it has passed. It saves time and costs steps; the answer is the same."""

    stop: Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(max_length=4)] = ("\n[Question]",)
    """Strings before one of which a message ends; by default where the model begins a further example."""

    max_queries: Positive = 20
    """How many queries of a chain are looked at."""

    max_chain_tokens: Positive = 1024
    """The most tokens of a chain."""

    max_final_tokens: Positive = 512
    """The most tokens of the final content."""

    temperature: Temperature | None = None
    """The temperature of chains and final content; the run's unless given. The reader's is always 0."""

    @property
    def reads(self) -> bool:
        """Return whether any document is read."""
        return self.retrieve and (self.verify or self.complete)

    @property
    def has_long_answers(self) -> bool:
        """Return whether answers are compared with their documents as long ones."""
        return (self.answers or ("long" if self.questions == "long-form" else "short")) == "long"


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
